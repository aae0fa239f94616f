"""A program with JAX or CuPy (stand-ins) that is refused memory without a call of CUDA.

    python_end.py SITUATION [WORDS]

In every situation the arena is full; how the program takes that differs.
"""
import _thread
import ctypes
import os
import sys
import threading
import time
import weakref

GIB = 1 << 30
SITUATION, WORDS = sys.argv[1], sys.argv[2:]


def start(framework):
    """The framework's import comes before CUDA's start, as in real programs."""
    __import__(framework)
    import python_device  # noqa: F401
    return sys.modules[framework]


def start_jax(full=9):
    jax = start("jax")
    import jax.numpy  # noqa: F401
    from jax._src import xla_bridge
    xla_bridge.initialise()
    xla_bridge.Device.stats = {"pool_bytes": 12 * GIB, "bytes_limit": 12 * GIB,
                               "bytes_in_use": full * GIB + GIB,
                               "largest_free_block_bytes": GIB // 2}
    inside = (os.path.dirname(jax.__file__) + "/numpy.py", "ones", 9)
    jax.profiler.held += [
        ([inside, ("/home/me/train.py", "load", 12), ("/home/me/train.py", "<module>", 40)],
         6, 6 * GIB, "buffer", "cuda:0"),
        ([inside, ("/home/me/train.py", "load", 12), ("/home/me/train.py", "again", 50)],
         2, 2 * GIB, "buffer", "cuda:0"),
        ([inside, ("/home/me/model.py", "step", 7)], 1, GIB, "buffer", "cuda:0"),
        ([inside], 1, GIB // 2, "executable", None),
        ([inside, ("/home/me/model.py", "host", 8)], 1, 5 * GIB, "buffer", "cpu:0"),
    ]
    return jax


def step(size=3 * GIB, **more):
    return sys.modules["jax.numpy"].ones(size, **more)


def uncaught():
    start_jax()
    step()


def boundary():
    start_jax()
    step(boundary=True)


def in_pieces():
    start_jax(full=7)
    step()


def in_thread():
    start_jax()
    thread = threading.Thread(target=step, name="worker")
    thread.start()
    thread.join()


def in_raw_thread():
    start_jax()
    _thread.start_new_thread(step, ())
    time.sleep(1)


def caused():
    start_jax()
    try:
        step()
    except RuntimeError as error:
        raise ValueError("the batch was too large") from error


def meanwhile():
    start_jax()
    try:
        step()
    except RuntimeError:
        raise ValueError("this came of it")


def handled():
    """A server: each request is refused, and the refusal is handled."""
    start_jax()
    for _ in range(5):
        try:
            step(boundary=True)
        except RuntimeError as error:
            print("outcome: refused", str(error)[:18], flush=True)
            kept = weakref.ref(error), weakref.ref(error.__traceback__.tb_next.tb_frame.f_code)
            references = sys.getrefcount(kept[1]())
        print("outcome: let go of", kept[0]() is None, references, flush=True)


def handled_then_fatal():
    start_jax()
    for size in (5 * GIB, 4 * GIB):
        try:
            step(size, boundary=True)
        except RuntimeError:
            pass
    step(boundary=True)


def arena_cannot_grow():
    """Without preallocation the driver refuses XLA, again and again; then JAX gives up."""
    start_jax()
    import python_device
    cuda, memory = python_device.cuda, ctypes.c_uint64()
    for size in (GIB, 1 << 21):
        while cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size)) == 0:
            pass
    xla = ctypes.CDLL(os.path.join(os.environ["STUBS"], "xla_extension.so"))
    print("outcome:", xla.stub_xla_take(ctypes.cast(cuda.cuMemAlloc_v2, ctypes.c_void_p),
                                        ctypes.byref(memory), ctypes.c_size_t(2 * GIB)), flush=True)
    step()


def system_exit():
    start_jax()
    try:
        step()
    except RuntimeError:
        sys.exit(4)


def interrupted():
    start_jax()
    try:
        step()
    except RuntimeError:
        raise KeyboardInterrupt


def other_error():
    start_jax()
    raise ValueError("RESOURCE_EXHAUSTED: Out of memory allocating 5 bytes")


def other_resource():
    jax = start_jax()
    jax.numpy.words = "RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested %d"
    step()


def on_processors():
    """JAX has no back end on the GPU: another library uses that."""
    start("jax")
    import jax.numpy  # noqa: F401
    step()


def imported_late():
    import python_device
    start_jax()
    python_device.cuda.cuInit(0)
    step()


def from_thread():
    """CUDA is started by another thread than the interpreter's main one."""
    thread = threading.Thread(target=start_jax)
    thread.start()
    thread.join()
    step()


def forked():
    start_jax()
    child = os.fork()
    if child == 0:
        step()
    print("outcome: child", os.waitpid(child, 0)[1] >> 8, flush=True)


def audited():
    """The host's own hook hears of everything, and forbids to read what is not its own."""
    heard = []
    sys.addaudithook(lambda event, arguments: heard.append(event))
    start_jax()
    step()


def cupy_limit():
    cupy = start("cupy")
    cupy.held.update(total=2 * GIB, used=GIB * 3 // 2, blocks=3, limit=2 * GIB)
    raise cupy.cuda.OutOfMemoryError(GIB, 2 * GIB, 2 * GIB)


def cupy_driver():
    """The driver refused CuPy: the call tells of that."""
    cupy = start("cupy")
    cupy.held.update(total=2 * GIB, used=2 * GIB, limit=0)
    raise cupy.cuda.OutOfMemoryError(GIB, 2 * GIB, 1 << 60)


globals()[SITUATION]()
print("outcome: went on", flush=True)

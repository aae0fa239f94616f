"""Frameworks (stand-ins) that can say what they hold, and something runs out of memory.

    framework_host.py SITUATION [gil]

"gil": the library that needs memory is called with the GIL held.
"""
import ctypes
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "framework_modules"))
import torch.cuda  # noqa: E402

GIL = "gil" in sys.argv[2:]
nccl = (ctypes.PyDLL if GIL else ctypes.CDLL)(os.path.join(os.environ["STUBS"], "libnccl.so.2"))
nccl.stub_nccl_ask.argtypes = [ctypes.c_size_t]
if GIL:
    torch.cuda.library = torch.cuda.looker


def ask(mib=1024):
    return nccl.stub_nccl_ask(mib << 20)


def say(*words):
    print("outcome:", *words, flush=True)


def tell(name, value):
    print("shim: %s=%d" % (name, value), file=sys.stderr, flush=True)


def fill(count=15, mib=1024, used=None):
    """Segments; the first len(used) of them in use only so far, in MiB."""
    for i in range(count):
        result, _ = torch.cuda.take(mib, used[i] if used and i < len(used) else None)
        assert result == 0, result


def wait_until_told(milliseconds=20000):
    """A late answer comes after the call; give it the time that it needs."""
    folder = os.environ.get("GPUOOMSHIM_REPORT_DIR")
    deadline = time.monotonic() + milliseconds / 1000
    while folder and "libgpuoomshim" in os.environ.get("LD_PRELOAD", "") and \
            time.monotonic() < deadline:
        texts = [name for name in os.listdir(folder) if name.endswith(".json")]
        if any('"late"' in open(os.path.join(folder, name)).read() for name in texts):
            return
        time.sleep(0.01)


def idle():
    """12 of 15 GiB are idle in whole segments, and somebody else asks."""
    if "told" in sys.argv:
        torch.cuda.fraction = 0.9
        torch.cuda.settings.update(
            garbage_collection_threshold=0.8,
            PYTORCH_CUDA_ALLOC_CONF="expandable_segments:False, garbage_collection_threshold:0.8")
    fill(used=[0] * 12)
    say("ask", ask())
    tell("asked", torch.cuda.asked)


def in_use():
    fill()
    say("ask", ask())


def others_in_pieces():
    fill(30, 512, [2] * 30)
    say("ask", ask())
    tell("asked", torch.cuda.asked)


def own_in_pieces():
    """30 segments of 512 MiB, 2 MiB of each in use, and torch itself asks for 1024."""
    if "expandable" in sys.argv:
        torch.cuda.settings["expandable_segments"] = True
    fill(30, 512, [2] * 30)
    say("torch asks", torch.cuda.take(1024)[0])
    if "silent" not in sys.argv:
        wait_until_told()


def own_grows():
    """Its segments fill the device one by one, with 10 MiB left over in each."""
    fill(62, 250, [240] * 62)
    say("torch asks", torch.cuda.take(600)[0])
    wait_until_told()


def own_in_use():
    fill()
    say("torch asks", torch.cuda.take(1024)[0])
    wait_until_told()


def own_is_not_kept_waiting():
    """The answer comes only when the failing call has returned: who waited for it would hang."""
    returned = threading.Event()
    torch.cuda.before_telling = returned.wait
    fill(30, 512, [2] * 30)
    say("torch asks", torch.cuda.take(1024)[0])
    returned.set()
    wait_until_told()


def own_then_survives():
    """The failure is told; then the same request fits while the late answer is on its way."""
    torch.cuda.before_telling = lambda: time.sleep(0.3)
    fill(30, 512, [2] * 30)
    for given in (0, 4):
        for i in range(given):
            torch.cuda.give(i)
        say("torch asks", torch.cuda.take(1024)[0])
    wait_until_told()
    time.sleep(0.5)


def own_then_exits():
    fill(30, 512, [2] * 30)
    say("torch asks", torch.cuda.take(1024)[0])
    os._exit(0)


def own_then_ends():
    torch.cuda.before_telling = lambda: time.sleep(0.05)
    fill(30, 512, [2] * 30)
    say("torch asks", torch.cuda.take(1024)[0])


def own_then_raises():
    """What most programs do: the exception ends them."""
    fill(30, 512, [2] * 30)
    say("torch asks", torch.cuda.take(1024)[0])
    raise MemoryError("nobody catches it")


def own_then_forks():
    torch.cuda.before_telling = lambda: time.sleep(0.3)
    fill(30, 512, [2] * 30)
    say("torch asks", torch.cuda.take(1024)[0])
    child = os.fork()
    if child == 0:
        os._exit(7)
    say("child", os.waitpid(child, 0)[1] >> 8)
    wait_until_told()


def survives():
    """torch gets along by itself: nobody asks anything."""
    fill(used=[0] * 15)
    say("torch asks", torch.cuda.take(2048)[0])
    time.sleep(0.2)
    tell("asked", torch.cuda.asked)


def stuck():
    """Somebody is inside torch for good, as far as anybody can tell."""
    torch.cuda.looker = torch.cuda.library
    fill(used=[0] * 12)
    sitter = threading.Thread(target=torch.cuda.sit, args=(4000,))
    sitter.start()
    time.sleep(0.2)
    started = time.monotonic()
    say("ask", ask())
    tell("waited_ms", int((time.monotonic() - started) * 1000))
    sitter.join()


def raises():
    def no():
        raise SystemExit("no\nway")
    torch.cuda.before_telling = no
    fill(used=[0] * 12)
    say("ask", ask())


def lacks():
    del torch.cuda.memory_stats
    fill(used=[0] * 12)
    say("ask", ask())


def nonsense():
    kind = sys.argv[-1]

    def change(stats):
        if kind == "negative":
            stats["reserved_bytes"] = -5
        elif kind == "huge":
            stats["reserved_bytes"] = 1 << 62
        elif kind == "more-used":
            stats["allocated_bytes"] = stats["reserved_bytes"] + 1
        elif kind == "words":
            stats["reserved_bytes"] = "a\nlot"
        elif kind == "renamed":
            stats["reserved"] = stats.pop("reserved_bytes")
    torch.cuda.change_stats = change
    fill(used=[0] * 12)
    say("ask", ask())


def allocates():
    """Who is asked what it holds wants memory for that, and does not get it."""
    torch.cuda.before_telling = lambda: tell("wanted", nccl.stub_nccl_ask(14000 << 20))
    fill(used=[0] * 12)
    say("ask", ask())


def history():
    """Recorded history makes a snapshot long: it is left alone."""
    torch._C = type("C", (), {"_cuda_isHistoryEnabled": staticmethod(lambda: True)})
    torch.cuda.memory_snapshot = lambda: tell("walked", 1)
    fill(used=[0] * 12)
    say("ask", ask())


def other_frameworks():
    import cupy
    import jax  # noqa: F401
    from jax._src import xla_bridge
    cupy.held.update(total=2048 << 20, used=1024 << 20, blocks=3, limit=4096 << 20)
    if "initialised" in sys.argv:
        xla_bridge.initialise()
    fill()
    say("ask", ask())


def snapshot():
    """The program itself wants a report."""
    shim = ctypes.CDLL(None)
    fill(used=[0] * 12)
    if hasattr(shim, "gpuoomshim_snapshot"):
        shim.gpuoomshim_snapshot(None)


globals()[sys.argv[1]]()

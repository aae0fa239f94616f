"""torch (a stand-in) keeps 12 of its 15 GiB idle, and something else needs memory.

    flush_host.py SITUATION [gil]

"gil": the library that needs memory is called with the GIL held.
"""
import ctypes
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "flush_modules"))
import torch.cuda  # noqa: E402

GIL = "gil" in sys.argv[2:]
nccl = (ctypes.PyDLL if GIL else ctypes.CDLL)(os.path.join(os.environ["STUBS"], "libnccl.so.2"))
nccl.stub_nccl_ask.argtypes = [ctypes.c_size_t]
nccl.stub_nccl_ask_in_capture.argtypes = [ctypes.c_size_t, ctypes.POINTER(ctypes.c_int)]


def fill(count=15, idle=12):
    segments = []
    for _ in range(count):
        result, segment = torch.cuda.take(1024)
        assert result == 0, result
        segments.append(segment)
    for segment in segments[:idle]:
        torch.cuda.give(segment)
    return segments


def ask(mib=1024):
    return nccl.stub_nccl_ask(mib << 20)


def say(*words):
    print("outcome:", *words, flush=True)


def tell(name, value):
    print("shim: %s=%d" % (name, value), file=sys.stderr, flush=True)


def in_ms(function):
    started = time.monotonic()
    answer = function()
    return answer, int((time.monotonic() - started) * 1000)


def cached():
    fill()
    say("ask", ask())
    tell("emptied", torch.cuda.emptied)


def sitting():
    """Somebody is inside torch's allocator for longer than anybody waits."""
    fill()
    sitter = threading.Thread(target=torch.cuda.sit, args=(3000,))
    sitter.start()
    time.sleep(0.2)
    result, ms = in_ms(ask)
    say("ask while somebody sits inside torch", result)
    tell("waited_ms", ms)
    again, ms = in_ms(lambda: ask(2048))
    say("ask again", again)
    tell("waited_ms", ms)
    sitter.join()
    time.sleep(0.2)
    say("the late flush did help" if ask(512) == 0 else "no help")


def own():
    """torch runs out of memory itself and gets along."""
    fill(15, 15)
    (result, _), ms = in_ms(lambda: torch.cuda.take(2048))
    say("torch asks for itself", result)
    tell("waited_ms", ms)
    tell("emptied", torch.cuda.emptied)


def own_reserved():
    """torch fails twice inside its allocator, where only what is held back can help."""
    fill(14, 0)
    say("torch asks for itself", torch.cuda.take(1024)[0])
    tell("emptied", torch.cuda.emptied)


def own_fails():
    fill(15, 0)
    say("torch asks for itself", torch.cuda.take(2048)[0])
    tell("emptied", torch.cuda.emptied)


def too_little():
    fill(10, 10)
    assert ask(5120) == 0
    say("ask", ask(12000))
    tell("emptied", torch.cuda.emptied)


def crossed():
    """One thread has torch flushed while another fails inside torch, with its lock."""
    torch.cuda.before_emptying = lambda: time.sleep(0.3)
    fill(15, 0)
    answers = {}

    def one(name, function):
        answers[name], ms = in_ms(function)
        tell("waited_ms", ms)
    asker = threading.Thread(target=one, args=("ask", ask))
    inside = threading.Thread(target=one, args=("inside", lambda: torch.cuda.take(2048)[0]))
    asker.start()
    while not torch.cuda.emptied:
        time.sleep(0.01)
    inside.start()
    asker.join()
    inside.join()
    say("inside torch", answers["inside"])
    say("ask", answers["ask"])
    tell("emptied", torch.cuda.emptied)


def capturing():
    fill()
    end = ctypes.c_int(-1)
    say("ask", nccl.stub_nccl_ask_in_capture(1024 << 20, ctypes.byref(end)))
    say("end of capture", end.value)
    tell("emptied", torch.cuda.emptied)


def raises():
    def no():
        raise SystemExit("no\nway")
    torch.cuda.before_emptying = no
    fill()
    say("ask", ask())


def allocates():
    """What is asked to give back wants memory for that, and does not get it."""
    def want():
        tell("wanted", nccl.stub_nccl_ask(14000 << 20))
    torch.cuda.before_emptying = want
    fill()
    say("ask", ask())


def finalizing():
    class Last:
        def __del__(self, ask=ask, write=os.write, finalizing=sys.is_finalizing):
            write(1, b"outcome: finalizing %d ask %d\n" % (finalizing(), ask()))
    fill()
    sys.last_of_all = Last()  # module dictionaries are emptied when the interpreter ends


def together():
    count, answers = 64, []
    fill()
    torch.cuda.before_emptying = lambda: time.sleep(0.3)
    start = threading.Barrier(count)

    def one():
        start.wait()
        answers.append(ask(128))
    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say("64 threads", sorted(set(answers)))
    tell("emptied", torch.cuda.emptied)


def launch():
    """With lazy loading the first launch of a kernel needs memory."""
    cuda = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    fill()
    assert cuda.cuModuleLoadData(ctypes.byref(module), b"an image") == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"kernel") == 0
    assert ask(int(os.environ.get("LEFT", "512"))) == 0  # that was all that was free
    say("launch", cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None))


def pinned():
    """torch keeps pinned memory, and something else needs some; the device is not short."""
    import torch._C as extension
    nccl.stub_nccl_pin.argtypes = [ctypes.c_size_t]
    fill(2, 2)
    assert extension.pin(6144) == 0
    say("pin", nccl.stub_nccl_pin(4096 << 20))
    say("torch pins for itself", extension.pin(6144))
    tell("emptied", torch.cuda.emptied)
    tell("host_emptied", extension.host_emptied)


def workspaces():
    """torch has no idle memory, but what cuBLAS works with."""
    import torch._C as extension
    extension.workspaces = fill(15, 0)[:3]
    say("ask", ask())
    tell("emptied", torch.cuda.emptied)
    tell("workspaces", len(extension.workspaces))


def keeper():
    """Only GPUOOMSHIM_FLUSH says who could help."""
    import keeper as unused  # noqa: F401
    fill()
    del sys.modules["torch.cuda"]
    say("ask", ask())


globals()[sys.argv[1]]()

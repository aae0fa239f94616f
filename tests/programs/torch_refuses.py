"""torch (a stand-in that tells of itself, in STUBS) refuses memory.

    torch_refuses.py SITUATION

Prints what lies in the report directory at the moment at which the caller has its error.
"""
import ctypes
import os
import sys
import threading

MIB = 1 << 20
CAPTURING, EXPANDABLE, UNCACHED = 2, 3, 1
torch = ctypes.CDLL(os.path.join(os.environ["STUBS"], "libc10_cuda.so"))
torch.stub_torch_take.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
torch.stub_torch_limit.argtypes = [ctypes.c_size_t]


def open_device():
    driver = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    return context


def take(mib):
    number = ctypes.c_int()
    return torch.stub_torch_take(ctypes.byref(number), mib * MIB), number.value


def fill(mib):
    for _ in range(mib // 1024):
        assert take(1024)[0] == 0


def say(*words):
    print("outcome:", *words, flush=True)


def say_what_lies_there():
    """Only with the library, so that both runs print the same."""
    folder = os.environ.get("GPUOOMSHIM_REPORT_DIR")
    if folder and "libgpuoomshim" in os.environ.get("LD_PRELOAD", ""):
        print("shim: there=%d" % len([name for name in os.listdir(folder)
                                      if name.endswith((".json", ".draft"))]),
              file=sys.stderr, flush=True)


def model(mib):
    result = take(mib)[0]
    say("refused" if result else "had")
    if result:
        say_what_lies_there()
    return result


def once():
    fill(12288)
    model(8192)
    os._exit(0)


def expandable():
    torch.stub_torch_go(EXPANDABLE)
    fill(12288)
    model(8192)


def fraction():
    torch.stub_torch_limit(4096 * MIB)
    fill(3072)
    model(2048)


def capturing():
    fill(12288)
    torch.stub_torch_go(CAPTURING)
    model(8192)


def uncached():
    torch.stub_torch_go(UNCACHED)
    fill(12288)
    model(8192)


def server():
    fill(12288)
    for i in range(1000):
        assert take(8192 + i)[0]
    say("refused 1000")
    os._exit(0)


def lines_in_turn():
    fill(12288)
    for i in range(50):
        assert take(8192 + i)[0]
        assert take(7168 + i)[0]
    say("refused 100")
    os._exit(0)


def halving():
    """As a trainer looks for its batch: at one line, less and less, until it fits."""
    fill(8192)
    mib = 30720
    while take(mib)[0]:
        mib //= 2
    say("had", mib)


def trials_then_fatal():
    """Plans that want too much, each of which torch throws for and its caller survives."""
    take(1)
    for mib in (20480, 19456, 18432, 1024, 20480, 1024, 19456, 1024, 17408):
        result = take(mib)[0]
    say("refused" if result else "had")
    say_what_lies_there()
    os._exit(0)


def threads():
    context = open_device()
    fill(12288)
    driver = ctypes.CDLL("libcuda.so.1")
    refused = []

    def work(i):
        driver.cuCtxSetCurrent(context)
        refused.append(take(8192 + i)[0])
    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    say("refused", sum(1 for result in refused if result))


open_device()
{function.__name__: function for function in (
    once, expandable, fraction, capturing, uncached, server, lines_in_turn, halving,
    trials_then_fatal, threads)}[sys.argv[1]]()

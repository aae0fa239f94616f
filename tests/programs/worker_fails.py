"""A program in Python that survives one failure of a line and ends by the next one there.

    worker_fails.py exception|thread|sys_exit|_exit|abort|kill|exec    itself, and how it ends
    worker_fails.py worker      in a forked worker, which ends by an exception
"""
import ctypes
import multiprocessing
import os
import signal
import sys
import threading

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")


def must(result):
    assert result == 0, result


def open_device():
    context = ctypes.c_void_p()
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))


def allocate(mib):
    address = ctypes.c_uint64()
    return cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib * MIB)), address


def load(mib, cache):
    """Asks again when it could free something."""
    while True:
        result, address = allocate(mib)
        print("outcome: load", mib, result, flush=True)
        if result == 0:
            return address
        if not cache:
            raise MemoryError("out of memory")
        must(cuda.cuMemFree_v2(cache.pop()))


def work():
    open_device()
    result, cached = allocate(8192)
    must(result)
    for mib, cache in ((10240, [cached]), (7168, [])):
        load(mib, cache)


def end_by(how):
    if how == "sys_exit":
        sys.exit(3)
    if how == "_exit":
        os._exit(3)
    if how == "abort":
        os.abort()
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exec":
        os.execv("/bin/true", ["true"])
    raise


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        worker = multiprocessing.get_context("fork").Process(target=work)
        worker.start()
        worker.join()
        print("outcome: worker", worker.exitcode, flush=True)
    elif sys.argv[1] == "thread":
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    else:
        try:
            work()
        except MemoryError:
            end_by(sys.argv[1])

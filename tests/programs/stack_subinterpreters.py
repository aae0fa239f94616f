"""Allocations inside sub-interpreters, on this thread and on others."""
import sys
import threading

from python_device import context, cuda

PROGRAM = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def one_round():
    address = ctypes.c_uint64()
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20)) == 0
    assert cuda.cuMemFree_v2(address) == 0
for _ in range(100):
    one_round()
"""

try:
    from _testcapi import run_in_subinterp
except ImportError:
    sys.exit(77)


def run():
    cuda.cuCtxSetCurrent(context)
    for _ in range(3):
        assert run_in_subinterp(PROGRAM) == 0


run()
threads = [threading.Thread(target=run) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("outcome: sub-interpreters ended")

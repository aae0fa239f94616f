"""A caller through ctypes that asks again: frees its cache and asks for the same, as numba does.

    retries.py [elsewhere]: and at last it fails in another place, for good
"""
import ctypes
import sys

GIB = 1 << 30
cuda = ctypes.CDLL("libcuda.so.1")


def must(result):
    assert result == 0, result


def allocate(size):
    address = ctypes.c_uint64()
    return cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)), address


def allocate_or_free_cache(size, cache):
    result, address = allocate(size)
    if result == 2:
        must(cuda.cuMemFree_v2(cache))
        result, address = allocate(size)
    return result, address


def open_device():
    context = ctypes.c_void_p()
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))


open_device()
for _ in range(3):
    _, kept = allocate(10 * GIB)
    outcome, got = allocate_or_free_cache(8 * GIB, kept)
    print("outcome: survived", outcome)
    must(cuda.cuMemFree_v2(got))
if "elsewhere" in sys.argv:
    _, kept = allocate(10 * GIB)
    outcome, _ = allocate(8 * GIB)
    print("outcome: elsewhere", outcome)

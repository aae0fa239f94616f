"""Tags from Python: two lines of ctypes."""
import ctypes
import sys

shim = ctypes.CDLL(None)
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
for result in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
               cuda.cuCtxSetCurrent(context)):
    if result:
        sys.exit(77)


def allocate(mib):
    address = ctypes.c_uint64()
    return cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib << 20))


def weights():
    allocate(3000)


def activations():
    for _ in range(4):
        allocate(500)


def cache():
    shim.gpuoomshim_push_tag(b"kv-cache")
    for _ in range(3):
        allocate(700)
    shim.gpuoomshim_pop_tag()


weights()
activations()
cache()
print("outcome:", allocate(9000))

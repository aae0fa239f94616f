"""Tags from Python: two lines of ctypes."""
import ctypes

from python_device import cuda

shim = ctypes.CDLL(None)


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

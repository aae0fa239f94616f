"""One line of a step keeps a little, another uses much for a moment, and fails in the end.

Both allocate in the same place, so only their callers tell them apart.
"""
import ctypes

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")
allocate = cuda.cuMemAlloc_v2


class Block:
    def __init__(self, mib):
        self.address = ctypes.c_uint64()
        self.result = allocate(ctypes.byref(self.address), ctypes.c_size_t(mib * MIB))  # allocates

    def free(self):
        cuda.cuMemFree_v2(self.address)


def step(losses):
    losses.append(Block(8))  # leaks
    batch = Block(512)  # fails
    if batch.result == 0:
        batch.free()
    return batch.result


def main():
    context = ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    losses = []
    while step(losses) == 0:
        pass
    print("outcome: out of memory after", len(losses) > 1000)


main()

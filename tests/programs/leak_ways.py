"""One line keeps, reached from three functions and by recursion; another fails in the end.

All allocate through one function, so that neither the newest line nor the whole stack says who.
"""
import ctypes

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")


def allocate(mib):
    address = ctypes.c_uint64()
    result = cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib * MIB))  # allocates
    return result, address


def keeps(depth):
    if depth > 0:
        return keeps(depth - 1)
    return allocate(8)[0]  # leaks


def uses():
    result, address = allocate(512)  # fails
    if result == 0:
        cuda.cuMemFree_v2(address)
    return result


def train(round):
    return keeps(round % 3)


def evaluate():
    return keeps(0)


def check():
    return keeps(0)


def main():
    context = ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    round = 0
    while not (train(round) or uses() or evaluate() or check() or uses()):
        round += 1
    print("outcome: out of memory after", round > 500)


main()

"""Numba's compiled code, which has no unwind data of a file, calls the allocator."""
import ctypes
import sys

import numba
import numpy

from python_device import cuda

allocate = cuda.cuMemAlloc_v2
allocate.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
allocate.restype = ctypes.c_int


@numba.njit
def fill(place, count):
    wrong = 0
    for i in range(count):
        wrong += allocate(place, 4096)
    return wrong


addresses = numpy.zeros(1, dtype=numpy.uint64)
print("outcome: wrong", fill(addresses.ctypes.data, 500))

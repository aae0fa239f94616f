"""Allocations far below the program's own line, through a library of many small functions."""
import ctypes

from python_device import cuda

LIBRARY = """
def allocate(mib):
    return cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20))

def step(depth, mib):
    return step(depth - 1, mib) if depth else allocate(mib)
"""
library = {"cuda": cuda, "ctypes": ctypes}
exec(compile(LIBRARY, "/venv/site-packages/layers/core.py", "exec"), library)
step = library["step"]


def encode():
    return step(60, 2)


def decode():
    return step(60, 2)


for _ in range(200):
    encode()
    decode()
print("outcome:", step(60, 1 << 20))

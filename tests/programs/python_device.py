"""`cuda`: the driver by ctypes, device 0's primary context current; without a device, exit 77."""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
for result in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
               cuda.cuCtxSetCurrent(context)):
    if result:
        sys.exit(77)

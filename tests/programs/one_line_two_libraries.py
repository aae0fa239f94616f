"""torch (a stand-in) is refused, and then another library at the same line of the program.

    one_line_two_libraries.py          all of the device is in use
    one_line_two_libraries.py cached   when torch keeps memory that it does not use
"""
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "flush_modules"))
import torch.cuda  # noqa: E402

runtime = ctypes.CDLL("libcudart.so.13")
nccl = ctypes.CDLL(os.path.join(os.environ["STUBS"], "libnccl.so.2"))
nccl.stub_nccl_ask.argtypes = [ctypes.c_size_t]
take, ask = torch.cuda.library.stub_torch_take, nccl.stub_nccl_ask
kept = [torch.cuda.take(1024)[1] for _ in range(15)]
segment = ctypes.c_int(-1)

for function, words in ((take, (ctypes.byref(segment), 4096 << 20)), (ask, (1024 << 20,))):
    runtime.cudaGetLastError()  # as torch does before it throws
    if function is ask and "cached" in sys.argv:
        for number in kept[:12]:
            torch.cuda.give(number)
    result = function(*words)
    print("outcome:", function.__name__, result, flush=True)

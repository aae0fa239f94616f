"""A stand-in for the extension module of that name."""
import ctypes

from torch import cuda

cuda.library.stub_torch_pin.argtypes = [ctypes.c_size_t]
host_emptied = 0
workspaces = []  # segments in use until somebody says that they may go


def pin(mib):
    return cuda.library.stub_torch_pin(mib << 20)


def _host_emptyCache():
    global host_emptied
    host_emptied += 1
    cuda.library.stub_torch_empty_host_cache()


def _cuda_clearCublasWorkspaces():
    while workspaces:
        cuda.give(workspaces.pop())

"""What this machine has: asked of the driver, without a context and without any framework."""
import ctypes
import functools
import importlib.util

from hosts import SIM


@functools.cache
def driver():
    """The initialised driver, or None."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    return library if library.cuInit(0) == 0 else None


def has_gpu():
    return driver() is not None


def is_simulated():
    """Then only programs of the driver can run, on the simulated device."""
    return not has_gpu() and (SIM / "libcuda.so.1").exists()


def gpu_count():
    count = ctypes.c_int()
    if not has_gpu() or driver().cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def gpu_bytes():
    """Memory of the first device; 0 without one."""
    total = ctypes.c_size_t()
    if gpu_count() == 0 or driver().cuDeviceTotalMem_v2(ctypes.byref(total), 0) != 0:
        return 0
    return total.value


def lacks(*modules):
    """The first of these Python modules that is not here, or None.  Imports none but packages."""
    for module in modules:
        try:
            if importlib.util.find_spec(module) is None:
                return module
        except ModuleNotFoundError:  # the package that it would be in
            return module
    return None

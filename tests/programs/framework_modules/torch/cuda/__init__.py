import ctypes
import os

from . import memory

MIB = 1 << 20
MOST_SEGMENTS = 64


def load(kind):
    opened = kind(os.path.join(os.environ["STUBS"], "libc10_cuda.so"))
    opened.stub_torch_take.argtypes = [ctypes.POINTER(ctypes.c_int), ctypes.c_size_t]
    opened.stub_torch_use.argtypes = [ctypes.c_int, ctypes.c_size_t]
    opened.stub_torch_look.restype = ctypes.c_void_p
    opened.stub_torch_look.argtypes = [ctypes.c_int] + [ctypes.POINTER(ctypes.c_size_t)] * 2
    return opened


library = load(ctypes.CDLL)
looker = load(ctypes.PyDLL)  # as torch does: its statistics are taken with the GIL held

before_telling = None  # a host's own idea of what goes wrong
before_emptying = None
asked = 0  # how often somebody wanted to know
emptied = 0
change_stats = None
settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False,
            "garbage_collection_threshold": 0.0}
fraction = 1.0


def take(mib, used_mib=None):
    """(result, segment)"""
    number = ctypes.c_int(-1)
    result = library.stub_torch_take(ctypes.byref(number), mib * MIB)
    if result == 0 and used_mib is not None:
        library.stub_torch_use(number, used_mib * MIB)
    return result, number.value


def give(number):
    library.stub_torch_use(number, 0)


def sit(milliseconds):
    library.stub_torch_sit(milliseconds)


def empty_cache():
    global emptied
    emptied += 1
    if before_emptying is not None:
        before_emptying()
    library.stub_torch_empty_cache()


def is_initialized():
    return True


def get_allocator_backend():
    return "native"


def get_per_process_memory_fraction(device=None):
    return fraction


def held():
    """(address, bytes, used bytes) of each segment."""
    found = []
    total, used = ctypes.c_size_t(), ctypes.c_size_t()
    for i in range(MOST_SEGMENTS):
        address = looker.stub_torch_look(i, ctypes.byref(total), ctypes.byref(used))
        if address:
            found.append((address, total.value, used.value))
    return found


def memory_stats(device):
    global asked
    asked += 1
    if before_telling is not None:
        before_telling()
    segments = held() if device == 0 else []
    split = [s for s in segments if 0 < s[2] < s[1]]
    stats = {
        "reserved_bytes": sum(s[1] for s in segments),
        "allocated_bytes": sum(s[2] for s in segments),
        "active_bytes": sum(s[2] for s in segments),
        "inactive_split_bytes": sum(s[1] - s[2] for s in split),
        "segment": len(segments),
        "active": sum(1 for s in segments if s[2]),
        "inactive_split": len(split),
    }
    if change_stats is not None:
        change_stats(stats)
    return {key + ".all.current": value for key, value in stats.items()}

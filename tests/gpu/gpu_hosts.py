"""Pieces of the Python programs that run on the GPU.  Memory is taken by plain allocations."""
import json

# The driver by ctypes; leave(mib) takes what is free but that much, without a failing call.
DRIVER = """
import ctypes, json, os, sys, time
MIB = 1 << 20
driver = ctypes.CDLL("libcuda.so.1")

def use_device():
    '''The first device's own context on this thread, where no framework leaves it there.'''
    context = ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0

def info():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value

def raw(size):
    pointer = ctypes.c_uint64()
    return driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))

def leave(mib):
    for step in (1024, 64, 2):
        while info() > (mib + step) * MIB:
            assert raw(step * MIB) == 0

def tell(name, value):
    print("host: %s %s" % (name, json.dumps(value)), flush=True)

def wait_until_told(seconds=20):
    '''What torch is asked for (its snapshot) reaches the report after the call has returned.'''
    awaited = ".torch.pickle" if "GPUOOMSHIM_TORCH_SNAPSHOT" in os.environ else '"late"'
    folder, deadline = os.environ["GPUOOMSHIM_REPORT_DIR"], time.monotonic() + seconds
    while "libgpuoomshim" in os.environ.get("LD_PRELOAD", "") and time.monotonic() < deadline:
        texts = [open(os.path.join(folder, name)).read() for name in os.listdir(folder)
                 if name.endswith(".json")]
        if any(awaited in text for text in texts):
            return
        time.sleep(0.01)
"""

# The program's own books beside the library's, at a moment.
BOOKS = """
import ctypes, sys
shim = ctypes.CDLL(None)
def tell(moment, own, device=0):
    if hasattr(shim, "gpuoomshim_live_bytes"):
        shim.gpuoomshim_live_bytes.restype = ctypes.c_uint64
        live = shim.gpuoomshim_live_bytes(device)
        print(f"shim: own_{moment}={own}\\nshim: live_{moment}={live}", file=sys.stderr, flush=True)
"""

# All that is free becomes torch's; then all but 1 GiB of it is idle.
FILL = """
import ctypes, sys
import torch
assert torch.cuda.is_available()

def free():
    return torch.cuda.mem_get_info()[0]

def fill():
    used = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    idle = []
    try:
        while free() > (2 << 30):
            idle.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
        while free() >= (32 << 20):
            size = (free() - (10 << 20)) >> 21 << 21
            idle.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        while free() >= (3 << 20):
            idle.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass  # the last MiB cannot be had
    return used  # the rest is given back to torch's cache here

def cuda(number):
    if number:
        print("outcome: failed", number)
        sys.exit(0)

prepare = act = None
"""

# After FILL and a case's prepare and act: once with "plenty", once with "full".
ACT = """
plenty = sys.argv[1] == "plenty"
things = prepare()
torch.cuda.synchronize()
used = None if plenty else fill()
print("shim: free=%d" % free(), file=sys.stderr)
try:
    for value in act(things):
        print("outcome: value", value)
except Exception as problem:
    print("outcome: failed", type(problem).__name__)
"""

FIRST_KERNEL = """
def prepare():
    return torch.linspace(-0.9, 0.9, 1000).cuda()  # a copy: no kernel of the device
def act(x):
    return [float(torch.erfinv(x).cpu().abs().sum())]
"""


def outcomes(run):
    prefix = "outcome: "
    return [line[len(prefix):] for line in run.stdout.splitlines() if line.startswith(prefix)]


def values(run):
    """What ACT printed when nothing failed."""
    lines = outcomes(run)
    assert lines and all(line.startswith("value ") for line in lines), run.stdout + run.stderr
    return [float(line.split()[-1]) for line in lines]


def told_by_host(run, name):
    prefix = f"host: {name} "
    (line,) = [line for line in run.stdout.splitlines() if line.startswith(prefix)]
    return json.loads(line[len(prefix):])

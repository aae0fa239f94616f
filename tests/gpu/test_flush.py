"""torch keeps the whole device as idle cache; everybody else gets memory all the same.

Each case fails without the library, and with it gives what it gives when there
is plenty of memory.
"""
import importlib.util
import sys

import pytest

PRELUDE = """
import ctypes, sys
import torch
assert torch.cuda.is_available()

def free():
    return torch.cuda.mem_get_info()[0]

def fill():
    '''All that is free becomes torch's; then all but 1 GiB of it is idle.'''
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
    print("outcome: failed", type(problem).__name__, file=sys.stdout)
"""

CUPY = """
import cupy
def prepare():
    return cupy.zeros(16)  # its own start is over
def act(_):
    big = cupy.zeros(1 << 29, dtype=cupy.float64)  # 4 GiB
    return [float(big[:16].get().sum()), big.nbytes]
"""

RAW = """
driver = ctypes.%s("libcuda.so.1")
def prepare():
    return ctypes.c_uint64(), (ctypes.c_uint32 * 4)()
def act(things):
    pointer, read = things
    cuda(driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4 << 30)))
    cuda(driver.cuMemsetD32_v2(pointer, 7, ctypes.c_size_t(1 << 30)))
    cuda(driver.cuMemcpyDtoH_v2(read, ctypes.c_uint64(pointer.value + (3 << 30)),
                                ctypes.c_size_t(16)))
    return list(read)
"""

KERNEL = """
def prepare():
    return torch.linspace(-0.9, 0.9, 1000).cuda()  # a copy: no kernel of the device
def act(x):
    return [float(torch.erfinv(x).cpu().abs().sum())]
"""

CUBLAS = """
def prepare():
    torch.manual_seed(1)
    return torch.rand(256, 256).cuda(), torch.rand(256, 256).cuda()
def act(things):
    return [float((things[0] @ things[1]).cpu().sum())]
"""

CUDNN = """
torch.backends.cudnn.allow_tf32 = False
def prepare():
    torch.manual_seed(1)
    return torch.rand(4, 16, 64, 64).cuda(), torch.rand(32, 16, 3, 3).cuda()
def act(things):
    return [float(torch.nn.functional.conv2d(*things).cpu().sum())]
"""

CASES = {
    "cupy": (CUPY, ["cupy"]),
    "raw-with-gil": (RAW % "PyDLL", []),
    "raw-without-gil": (RAW % "CDLL", []),
    "first-kernel": (KERNEL, []),
    "cublas": (CUBLAS, []),
    "cudnn": (CUDNN, []),
}


def outcomes(run):
    return [line for line in run.stdout.splitlines() if line.startswith("outcome: ")]


def values(run):
    lines = outcomes(run)
    assert lines and all(line.startswith("outcome: value ") for line in lines), \
        run.stdout + run.stderr
    return [float(line.split()[-1]) for line in lines]


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    code, needs = CASES[request.param]
    for module in ["torch", *needs]:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"no {module} here")
    program = tmp_path / "host.py"
    program.write_text(PRELUDE + code + ACT)
    return program


def test_cache_of_torch_is_given_back_to_who_needs_it(host, case):
    plenty = values(host(sys.executable, case, "plenty", preload=False))
    bare = host(sys.executable, case, "full", preload=False)
    assert any(line.startswith("outcome: failed") for line in outcomes(bare)), bare.stdout
    run = host(sys.executable, case, "full")
    assert values(run) == pytest.approx(plenty, rel=1e-4)
    rescued = [report for report in run.reports if report.outcome == "recovered"]
    assert rescued, run.stderr
    (step,) = [step for step in rescued[0].steps("flush") if step["result"] == "helped"]
    assert step["freed_bytes"] > 1 << 30
    assert "torch" in step["reason"]
    assert rescued[0].code == "cache-held"
    assert "torch kept" in rescued[0].text

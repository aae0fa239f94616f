"""torch keeps the whole device as idle cache; everybody else gets memory all the same.

Each case fails without the library, and with it gives what it gives when there
is plenty of memory.
"""
import sys

import pytest

from gpu_hosts import ACT, FILL, FIRST_KERNEL, outcomes, values

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
    "first-kernel": (FIRST_KERNEL, []),
    "cublas": (CUBLAS, []),
    "cudnn": (CUDNN, []),
}


@pytest.fixture(params=CASES)
def case(request, python_file):
    code, needs = CASES[request.param]
    return python_file(FILL + code + ACT, ["torch", *needs])


@pytest.mark.seconds(90)
@pytest.mark.gib(12)
def test_cache_of_torch_is_given_back_to_who_needs_it(host, case):
    plenty = values(host(sys.executable, case, "plenty", preload=False))
    bare = host(sys.executable, case, "full", preload=False)
    assert any(line.startswith("failed") for line in outcomes(bare)), bare.stdout
    run = host(sys.executable, case, "full")
    assert values(run) == pytest.approx(plenty, rel=1e-4)
    rescued = [report for report in run.reports if report.outcome == "recovered"]
    assert rescued, run.stderr
    (step,) = [step for step in rescued[0].steps("flush") if step["result"] == "helped"]
    assert step["freed_bytes"] > 1 << 30
    assert "torch" in step["reason"]
    assert rescued[0].code == "cache-held"
    assert "torch kept" in rescued[0].text

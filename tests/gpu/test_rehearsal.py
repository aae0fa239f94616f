"""GPUOOMSHIM_LIMIT and GPUOOMSHIM_INJECT with frameworks on a real GPU."""
import pytest

from hosts import MIB

GIB = 1024 * MIB
LIMIT = {"GPUOOMSHIM_LIMIT": "4GiB"}

NVML = """
import ctypes
class V1(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]
class V2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + \\
        [(name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")]
import os
def nvml():
    library = ctypes.CDLL("libnvidia-ml.so.1")
    device = ctypes.c_void_p()
    assert library.nvmlInit_v2() == 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]  # NVML counts them all
    if visible.isdigit():
        found = library.nvmlDeviceGetHandleByIndex_v2(int(visible), ctypes.byref(device))
    else:
        found = library.nvmlDeviceGetHandleByUUID(visible.encode(), ctypes.byref(device))
    assert found == 0, (found, visible)
    one, two = V1(), V2(version=ctypes.sizeof(V2) | 2 << 24)
    assert library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(one)) == 0
    assert library.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(two)) == 0
    return one, two
"""


@pytest.fixture
def run(with_library):
    """Run python code under the limit, on one device."""

    def run_code(code, *needs, **env):
        return with_library(NVML + code, needs, env={**LIMIT, "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                                                     **env})

    return run_code


TORCH = """
import torch
torch.cuda.init()
free, total = torch.cuda.mem_get_info()
assert total == 4 << 30, total
assert torch.cuda.get_device_properties(0).total_memory == 4 << 30
one, two = nvml()
assert two.total - two.reserved <= 4 << 30, (two.total, two.reserved)
assert two.total == two.reserved + two.free + two.used
assert abs(two.free - free) <= 64 << 20, (two.free, free)
kept = []
try:
    while True:
        kept.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
except torch.cuda.OutOfMemoryError as error:
    print("out of memory after", len(kept), str(error).splitlines()[0])
assert 8 <= len(kept) <= 16, len(kept)
free, total = torch.cuda.mem_get_info()
assert free < 512 << 20, free
assert nvml()[1].free < 512 << 20
kept.clear()
torch.cuda.empty_cache()
x = torch.ones(1024, 1024, device="cuda")
print("finite", float((x @ x).sum()))
assert torch.cuda.mem_get_info()[0] > 2 << 30
"""


@pytest.mark.parametrize("conf", ["", "expandable_segments:True", "backend:cudaMallocAsync"])
def test_torch_sees_a_small_device(run, conf):
    result = run(TORCH, "torch", **({"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}))
    assert "out of memory after" in result.stdout
    report = result.reports[0]
    assert report.json["rehearsal"]["limited"] is True
    assert report.json["rehearsal"]["limit_bytes"] == 4 * GIB
    assert report.code in ("exhausted-by-process", "cache-held", "fragmented")
    assert report.ledger()["withheld"] > 0
    # The real device may be full of others' memory, but this process stays small.
    assert report.device()["own_bytes"] is None or report.device()["own_bytes"] <= 4 * GIB


def test_nvml_before_cuda_is_used(run):
    run("""
one, two = nvml()
assert two.total - two.reserved == 4 << 30, (two.total, two.reserved)
assert one.total >= one.free
import ctypes
ctypes.CDLL("libcuda.so.1").cuInit(0)
one, two = nvml()
assert two.total - two.reserved <= 4 << 30
""")


def test_cupy_fails_at_the_limit(run):
    result = run("""
import cupy
free, total = cupy.cuda.runtime.memGetInfo()
assert total == 4 << 30
assert cupy.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"] == 4 << 30
kept = []
try:
    while True:
        kept.append(cupy.empty((256 << 20,), dtype=cupy.uint8))
except cupy.cuda.memory.OutOfMemoryError:
    print("out of memory after", len(kept))
assert 8 <= len(kept) <= 16, len(kept)
kept.clear()
cupy.get_default_memory_pool().free_all_blocks()
print("sum", float(cupy.ones(1000).sum()))
""", "cupy")
    assert "out of memory after" in result.stdout


@pytest.mark.parametrize("part", ["kinds", "pools", "blocks", "contexts"])
def test_host_ends_well_under_a_limit(host, program, part):
    result = host(program("rehearse_limit"), part, env=LIMIT)
    assert result.code == 0, result.stdout + result.stderr
    own = [report.device()["own_bytes"] for report in result.reports]
    assert all(size is None or size <= 4 * GIB + 64 * MIB for size in own), own


def test_torch_survives_injected_failures(run):
    result = run("""
import torch
for i in range(40):
    x = torch.empty((i + 1) << 20, dtype=torch.uint8, device="cuda")
    del x
    torch.cuda.empty_cache()
print("done")
""", "torch", GPUOOMSHIM_LIMIT="off", GPUOOMSHIM_INJECT="every=7")
    assert "done" in result.stdout
    assert result.reports == []


def test_injected_failure_reaches_torch(run):
    result = run("""
import torch
x = torch.ones(1, device="cuda")
try:
    y = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    print("out of memory")
y = torch.ones(4, device="cuda")
print("sum", float(y.sum()))
""", "torch", GPUOOMSHIM_LIMIT="off", GPUOOMSHIM_INJECT="every=1,min=32MiB")
    assert result.stdout == "out of memory\nsum 4.0\n"
    assert result.report.code == "injected"

"""The written scenarios on silicon, where the simulated GPU proves too little: real
frameworks, two processes, host memory, versions.  Sizes follow what is free.
What the hosts of tests/programs do here is in test_programs.py; flushing, in test_flush.py.
"""
import subprocess
import sys

import pytest

from hosts import LOAD_PATHS, MIB, PROGRAMS, same_answers as same

GIB = 1024 * MIB


@pytest.fixture(params=LOAD_PATHS)
def program(request):
    return lambda name: PROGRAMS / f"{name}.{request.param}"


HOLD = """
import sys, torch
free = torch.cuda.mem_get_info()[0]
held = torch.empty(free // 4 * 3, dtype=torch.uint8, device="cuda")
print("holding", flush=True)
sys.stdin.read()
"""


# 2: torch fails, empties its cache and asks again; that is its own affair.
SURVIVES = """
import torch
free = torch.cuda.mem_get_info()[0]
block = free // 16
held = [torch.empty(block, dtype=torch.uint8, device="cuda") for _ in range(15)]
del held
larger = torch.empty(block * 8, dtype=torch.uint8, device="cuda")
print("reserved again", larger.numel() == block * 8)
"""


def test_torch_that_helps_itself_is_left_alone(script):
    run = script(SURVIVES, needs=["torch"])
    assert run.files == []
    assert run.lines_of_shim == []


# 4: live memory of torch, and torch asks for more than there is.
EXHAUSTS = """
import torch
free = torch.cuda.mem_get_info()[0]
live = torch.empty(free // 4 * 3, dtype=torch.uint8, device="cuda")
try:
    torch.empty(free // 2, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    print("out of memory")
"""


def test_live_memory_of_torch_is_exhausted_by_process(script):
    report = script(EXHAUSTS, needs=["torch"]).report
    assert (report.code, report.outcome) == ("exhausted-by-process", "failed")
    assert report.json["sites"][0]["live_bytes"] >= 1 * GIB


# 5: another process, with torch, holds three quarters of the device.
ASKS = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
device, context, free, total, memory = (ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t(),
                                        ctypes.c_size_t(), ctypes.c_uint64())
cuda.cuInit(0)
cuda.cuDeviceGet(ctypes.byref(device), 0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
cuda.cuCtxSetCurrent(context)
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
print("result", cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(free.value * 2)))
"""


def test_neighbour_with_torch_is_named_or_hidden(script):
    pytest.importorskip("torch")
    neighbour = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
    try:
        assert neighbour.stdout.readline() == "holding\n"
        report = script(ASKS, needs=[]).report
    finally:
        neighbour.communicate()
    assert report.code == "exhausted-by-others"
    listed = [p for p in report.json["processes"] if p["pid"] == neighbour.pid]
    assert (listed and listed[0]["used_bytes"] > GIB) or report.ledger()["hidden"] > GIB


# 7: torch's segments, each kept by one small live tensor.
PIECES = """
import torch
free = torch.cuda.mem_get_info()[0]
segment = free // 34 // (2 << 20) * (2 << 20)
kept = []
for _ in range(30):
    large = torch.empty(segment, dtype=torch.uint8, device="cuda")
    del large
    kept.append(torch.empty(2 << 20, dtype=torch.uint8, device="cuda"))
    kept.append(torch.empty(segment - (4 << 20), dtype=torch.uint8, device="cuda"))
kept = kept[0::2]
try:
    torch.empty(segment * 16, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    print("out of memory")
"""


def test_segments_of_torch_that_small_tensors_keep(script):
    report = script(PIECES, needs=["torch"]).report
    assert report.code in ("fragmented", "exhausted-by-process")
    assert any("expandable_segments:True" in line for line in report.json["verdict"]["advice"])


def test_expandable_segments_that_are_on_are_not_advised(script):
    run = script(PIECES, needs=["torch"],
                 env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
    for report in run.reports:
        assert not any("expandable_segments" in line for line in report.json["verdict"]["advice"])


# 9: more than the host has at all, so that nothing else on it suffers.
def test_pinned_memory_that_the_host_lacks_leaves_the_device_alone(host, program):
    report = same(host, program("host_memory"), "total").report
    assert report.code == "host-memory"
    assert all(step["result"] == "skipped" for step in report.json["recovery"])


def test_pieces_of_blocks_and_pools(host, program):
    run = same(host, program("fragments"))
    (report,) = [report for report in run.reports if report.json["kind"] == "snapshot"]
    fragments = report.device()["fragmentation"]
    assert abs(fragments["block_stuck_bytes"] - 256 * MIB) < 8 * MIB
    assert 600 <= fragments["pool_permille"] <= 700


# 12
FORKS = """
import os, torch
torch.zeros(1, device="cuda")
child = os.fork()
if child == 0:
    try:
        torch.zeros(1 << 20, device="cuda")
    except RuntimeError:
        print("child refused", flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("parent", float(torch.ones(1, device="cuda")))
"""


def test_child_that_torch_refuses_leaves_no_wrong_report(script):
    # torch looks at the pid itself, so the driver is not even asked.
    for report in script(FORKS, needs=["torch"]).reports:
        assert report.code == "forked"


def test_children_forked_amid_other_threads_get_their_error_and_end(host, program):
    same(host, program("forked_busy"), env={"GPUOOMSHIM_REPORT_MAX": "1"})


# 13: one line keeps a little of each round, another takes much and gives it back.
LEAKS = """
import torch
torch.cuda.set_per_process_memory_fraction(1.0)
free = torch.cuda.mem_get_info()[0]
kept = []

def keep(bytes):
    kept.append(torch.empty(bytes, dtype=torch.uint8, device="cuda"))

def work(bytes):
    torch.empty(bytes, dtype=torch.uint8, device="cuda")

try:
    while True:
        keep(free // 400)
        work(free // 30)
except torch.OutOfMemoryError:
    print("out of memory")
"""


def test_line_that_keeps_more_and_more_holds_the_most(script):
    report = script(LEAKS, needs=["torch"]).report
    assert report.code in ("leak", "exhausted-by-process", "fragmented")
    first = report.json["sites"][0]
    assert any(frame["function"].endswith("keep") for frame in first["stack"]["python"])


# --- versions ---


def test_driver_and_torchs_cuda_are_known_and_fit(script):
    report = script(EXHAUSTS, needs=["torch"]).report
    versions = {version["what"]: version for version in report.json["versions"]}
    assert versions["driver"]["version"].count(".") >= 1
    assert versions["torch is for CUDA"]["version"].count(".") == 1
    assert any(what.startswith("libcudart") for what in versions)
    assert report.json["mismatches"] == []

"""The written scenarios on silicon, where the simulated GPU proves too little: real
frameworks, two processes, versions.  Sizes follow what is free.
What the hosts of tests/programs do here is in test_programs.py; flushing, in test_flush.py;
torch's memory in pieces, in test_framework_view.py.
"""
import contextlib
import os
import subprocess
import sys

import pytest

from gpu_hosts import DRIVER
from hosts import MIB

GIB = 1024 * MIB

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
    assert report.json["sites"][0]["live_bytes"] >= report.device()["total_bytes"] // 2


def test_expandable_segments_that_are_on_are_not_advised(script):
    run = script(EXHAUSTS, needs=["torch"],
                 env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
    assert run.report.json["verdict"]["advice"]
    assert "expandable_segments" not in " ".join(run.report.json["verdict"]["advice"])


# 5: another process, with torch, holds three quarters of the device.
ASKS = DRIVER + """
use_device()
print("result", raw(info() * 2))
"""


@contextlib.contextmanager
def neighbour():
    """A process of torch that holds its memory; without the library."""
    other = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, env=other,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "holding\n"
            yield process
        finally:
            process.kill()


def test_neighbour_with_torch_is_named_or_hidden(same, python_file):
    path = python_file(ASKS, ["torch"])
    with neighbour() as process:
        report = same(sys.executable, path).report
    assert report.code == "exhausted-by-others"
    listed = [p for p in report.json["processes"] if p["pid"] == process.pid]
    assert (listed and listed[0]["used_bytes"] > GIB) or report.ledger()["hidden"] > GIB


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
    run = script(FORKS, needs=["torch"])
    assert run.stdout == "child refused\nparent 1.0\n"
    assert {report.code for report in run.reports} <= {"forked"}


# 13: one line keeps a little of each round, another takes much and gives it back.  Blocks of
# torch's cache are not split, or what is kept would lie in what was given back.
LEAKS = """
import torch
free = torch.cuda.mem_get_info()[0]
kept = []

def keep(size):
    kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))

def work(size):
    torch.empty(size, dtype=torch.uint8, device="cuda")

try:
    while True:
        keep(free // 400)
        work(free // 30)
except torch.OutOfMemoryError:
    print("out of memory")
"""


@pytest.mark.gib(12)
def test_line_that_keeps_more_and_more_holds_the_most(script):
    report = script(LEAKS, needs=["torch"],
                    env={"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:21"}).report
    assert report.code in ("leak", "exhausted-by-process", "fragmented")
    first = report.json["sites"][0]
    assert any(frame["function"].endswith("keep") for frame in first["stack"]["python"])


def test_driver_and_torchs_cuda_are_known_and_fit(script):
    report = script(EXHAUSTS, needs=["torch"]).report
    versions = {version["what"]: version for version in report.json["versions"]}
    assert versions["driver"]["version"].count(".") >= 1
    assert versions["torch is for CUDA"]["version"].count(".") == 1
    assert any(what.startswith("libcudart") for what in versions)
    assert report.json["mismatches"] == []

"""Frameworks on a real GPU: same output, and live bytes that match their own books."""
import sys

import pytest

from gpu_hosts import BOOKS
from hosts import MIB

TORCH = BOOKS + """
import torch
x = torch.randn(1024, 1024, device="cuda")
kept = [torch.empty(300 << 20, dtype=torch.uint8, device="cuda") for _ in range(8)]
del kept[::2]
y = (x * 2).sum().item()
print("finite", y == y, len(kept))
tell("reserved", torch.cuda.memory_reserved())
tell("allocated", torch.cuda.memory_allocated())
"""

# No matrix product: cuBLAS takes workspaces (64 MiB on an H200) beside torch's books.
SLACK = 4 * MIB


def books_match(run, moment="reserved"):
    (own,), (live,) = run.told(f"own_{moment}"), run.told(f"live_{moment}")
    assert own > 0
    assert abs(live - own) <= SLACK, (own, live)


@pytest.mark.parametrize("conf", ["", "expandable_segments:True"])
def test_torch(script, conf):
    run = script(TORCH, ["torch"], env={"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else None)
    books_match(run)
    assert run.files == []


def test_torch_on_cuda_malloc_async(script):
    run = script(TORCH, ["torch"], env={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
    books_match(run, "allocated")
    assert run.files == []


def test_cupy(script):
    code = BOOKS + """
import cupy
a = cupy.ones((1 << 26,), dtype=cupy.float32)
b = [cupy.zeros((1 << 24,), dtype=cupy.float32) for _ in range(4)]
del b[0]
print("sum", float((a + 1).sum()))
tell("reserved", cupy.get_default_memory_pool().total_bytes())
"""
    run = script(code, ["cupy"])
    books_match(run)
    assert run.files == []


def test_jax(script):
    code = BOOKS + """
import jax, jax.numpy as jnp
x = jnp.ones((4096, 4096))
print("sum", float((x @ x).sum()))
stats = jax.devices()[0].memory_stats()
tell("reserved", stats["pool_bytes"] if "pool_bytes" in stats else stats["bytes_limit"])
"""
    run = script(code, ["jax"], env={"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.25"})
    (own,), (live,) = run.told("own_reserved"), run.told("live_reserved")
    # XLA's pool is one block; beside it are small allocations of its runtime.
    assert live >= own
    assert live - own < 2048 * MIB
    assert run.files == []


def test_numba(script):
    code = BOOKS + """
import numpy
from numba import cuda
a = cuda.device_array((1 << 26,), dtype=numpy.float32)
b = cuda.to_device(numpy.arange(1 << 20, dtype=numpy.float32))
print("sum", float(b.copy_to_host().sum()))
tell("reserved", a.nbytes + b.nbytes)
"""
    run = script(code, ["numba", "numba.cuda"])
    books_match(run)


def test_torch_that_fills_the_device_names_torch(host, python_file):
    run = host(sys.executable, python_file("""
import torch
kept = []
def forward():
    kept.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
while True:
    forward()
""", ["torch"]))
    assert run.code == 1 and "OutOfMemoryError" in run.stderr
    report = run.report
    assert report.outcome == "failed"
    assert report.code in ("exhausted-by-process", "leak")
    request = report.json["request"]
    assert (request["api"], request["word"], request["entry"]) == ("torch", True, "cuMemAlloc_v2")
    total = report.device()["total_bytes"]
    ledger = report.ledger()
    assert abs(ledger["residual"]) < total / 100
    assert "torch" in "\n".join(report.text.splitlines()[:24])
    assert "host.py" in report.text and "forward" in report.text
    own = [p for p in report.json["processes"] if str(p["pid"]) in report.path.name]
    if own and own[0].get("used_bytes"):
        mine = sum(ledger[item] for item in ledger
                   if item.startswith(("live_", "pool_", "graph_")) or
                   item in ("rounding", "half_empty", "context_modules"))
        assert abs(mine - own[0]["used_bytes"]) < total / 100


def test_torch_survives_its_own_cache_flush_in_silence(script):
    """First attempts that torch answers by emptying its cache are no reports."""
    code = BOOKS + """
import torch
free = torch.cuda.mem_get_info()[0]
a = [torch.empty(free // 10, dtype=torch.uint8, device="cuda") for _ in range(9)]
del a
b = torch.empty(free // 2 + (8 << 20), dtype=torch.uint8, device="cuda")
print("got", b.numel() > 0)
"""
    run = script(code, ["torch"])
    assert run.files == []
    assert run.lines_of_shim == []

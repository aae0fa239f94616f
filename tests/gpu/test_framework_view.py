"""What torch, CuPy and JAX say about themselves, against what the report says that they said.

The device is filled by plain allocations of the driver, so that everything happens in a few GiB.
"""
import pickle

import pytest

from gpu_hosts import DRIVER, outcomes, told_by_host

pytestmark = pytest.mark.gib(14)

TORCH = """
import torch
def mib(size):
    return torch.empty(size * MIB, dtype=torch.uint8, device="cuda")
keep = [mib(1)]
def stats():
    told = torch.cuda.memory_stats(0)
    return {name: told[key + ".all.current"] for name, key in (
        ("reserved_bytes", "reserved_bytes"), ("used_bytes", "allocated_bytes"),
        ("active_bytes", "active_bytes"), ("inactive_split_bytes", "inactive_split_bytes"))}
"""

IDLE = TORCH + """
leave(9 * 1024)
idle = [mib(1024) for _ in range(8)]
used = mib(300)
del idle[:6]
tell("torch", stats())
print("outcome: raw", raw(4096 * MIB))
"""

# A segment of 512 MiB each, of which 510 are free and 2 are not.
PIECES = TORCH + """
COUNT = 16
leave(COUNT * 512 + 512)
large = []
for _ in range(COUNT):
    whole = mib(512)
    del whole
    large.append(mib(510))
    keep.append(mib(2))
del large
try:
    keep.append(mib(1024))
    print("outcome: fits")
except torch.OutOfMemoryError:
    print("outcome: out of memory")
    wait_until_told()
tell("torch", stats())
"""

CUPY = """
import cupy
def mib(size):
    return cupy.empty(size * MIB, dtype=cupy.uint8)
keep = [mib(1)]
leave(6 * 1024)
idle = [mib(1024) for _ in range(5)]
del idle[:4]
pool = cupy.get_default_memory_pool()
tell("cupy", {"reserved_bytes": pool.total_bytes(), "used_bytes": pool.used_bytes()})
print("outcome: raw", raw(4096 * MIB))
"""

JAX = """
import jax, jax.numpy
def mib(size):
    return jax.numpy.ones(size * MIB, dtype="uint8").block_until_ready()
keep = [mib(1)]
use_device()
leave(6 * 1024)
idle = [mib(1024) for _ in range(4)]
del idle[:3]
told = jax.devices()[0].memory_stats()
tell("jax", {"reserved_bytes": told["pool_bytes"], "used_bytes": told["bytes_in_use"]})
print("outcome: raw", raw(4096 * MIB))
"""

LOOK_ONLY = {"GPUOOMSHIM_RETRY": "off", "GPUOOMSHIM_FRAMEWORK_BUDGET": "10s"}


@pytest.fixture
def run(with_library):
    def start(name, code, **env):
        return with_library(DRIVER + code, [name], env=dict(LOOK_ONLY, **env))

    return start


def check_view(run, name):
    """The report's view of it, which is what it told its own program."""
    report = run.reports[-1]
    (view,) = [entry for entry in report.json["frameworks"] if entry["name"] == name]
    for key, value in told_by_host(run, name).items():
        assert view[key] == value, (key, view)
    assert report.ledger()["framework_idle"] == view["idle_bytes"]
    return view


def test_idle_cache_of_torch_is_proven_and_measured(run):
    result = run("torch", IDLE)
    assert outcomes(result) == ["raw 2"]
    view = check_view(result, "torch")
    verdict = result.report.json["verdict"]
    assert (verdict["code"], verdict["confidence"]) == ("cache-held", "proven")
    assert view["releasable_bytes"] >= 5 << 30
    assert view["segments"] and view["backend"] == "native"


def test_what_is_proven_comes_true(run):
    result = run("torch", IDLE, GPUOOMSHIM_RETRY="flush")
    assert outcomes(result) == ["raw 0"]
    (step,) = result.report.steps("flush")
    view = check_view(result, "torch")
    assert abs(step["freed_bytes"] - view["releasable_bytes"]) <= 64 << 20


def test_torch_in_pieces_is_told_so(run):
    result = run("torch", PIECES)
    assert outcomes(result) == ["out of memory"]
    view = check_view(result, "torch")
    assert not view["late"] and result.report.json["request"]["word"]
    assert view["idle_bytes"] >= 1 << 30
    verdict = result.report.json["verdict"]
    assert (verdict["code"], verdict["confidence"]) == ("fragmented", "likely")
    assert "expandable_segments:True" in verdict["advice"][0]


def test_advice_against_pieces_helps(run):
    result = run("torch", PIECES, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    assert outcomes(result) == ["fits"]


@pytest.mark.parametrize("code", [IDLE, PIECES], ids=["idle", "pieces"])
def test_snapshot_for_memory_viz_lies_beside_the_report(run, code):
    result = run("torch", code, GPUOOMSHIM_TORCH_SNAPSHOT="1")
    path = result.report.path.with_suffix(".torch.pickle")
    assert result.report.json["torch_snapshot"] == str(path)
    snapshot = pickle.loads(path.read_bytes())
    reserved = sum(s["total_size"] for s in snapshot["segments"] if s["device"] == 0)
    assert reserved == check_view(result, "torch")["reserved_bytes"]
    assert "device_traces" in snapshot


def test_driver_pool_of_torch_is_not_counted_twice(run):
    result = run("torch", IDLE.replace("raw(4096", "raw(20480"),
                 PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    assert outcomes(result) == ["raw 2"]
    (view,) = result.report.json["frameworks"]
    assert view["in_driver_pools"] and view["backend"] == "cudaMallocAsync"
    assert result.report.ledger()["framework_idle"] == 0


def test_pool_of_cupy_is_seen(run):
    result = run("cupy", CUPY)
    assert outcomes(result) == ["raw 2"]
    check_view(result, "cupy")
    assert result.report.code == "cache-held"


def test_memory_of_jax_is_seen(run):
    result = run("jax", JAX, XLA_PYTHON_CLIENT_PREALLOCATE="false")
    assert outcomes(result) == ["raw 2"]
    check_view(result, "jax")
    assert result.reports[-1].code in ("cache-held", "exhausted-by-process")

"""The allocators of CuPy and JAX, and torch and NCCL on two GPUs: same output with and without the
library, and at each moment live bytes that are the framework's own."""
import pytest

from books import moments
from gpu_hosts import BOOKS
from hosts import MIB


def books_agree(run, more=0):
    """Live bytes are the framework's, and at most so much that it does not count."""
    assert moments(run), run.stderr
    for moment in moments(run):
        (own,), (live,) = run.told(f"own_{moment}"), run.told(f"live_{moment}")
        assert own <= live + MIB and live <= own + 4 * MIB + more, (moment, own, live)


CUPY = BOOKS + """
import cupy
%s
def own():
    return %s
a = cupy.full((1 << 26,), 3, dtype=cupy.float32)
b = [cupy.zeros((1 << 24,), dtype=cupy.float32) for _ in range(4)]
tell("made", own())
print("values", float(a[-1]), float(b[3][5]))
del b[0]
cupy.cuda.runtime.deviceSynchronize()
tell("freed", own())
del a, b
give_back()
tell("empty", own())
"""
ARRAYS = "sum(array.nbytes for array in [globals().get('a')] + globals().get('b', []) " \
         "if array is not None)"
CUPY_ALLOCATORS = {
    "default": ("pool = cupy.get_default_memory_pool()\ngive_back = pool.free_all_blocks",
                "pool.total_bytes()"),
    "async": ("cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)\n"
              "give_back = lambda: None", ARRAYS),
    "managed": ("cupy.cuda.set_allocator(cupy.cuda.malloc_managed)\n"
                "give_back = lambda: None", ARRAYS),
    "managed-pool": ("pool = cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)\n"
                     "cupy.cuda.set_allocator(pool.malloc)\ngive_back = pool.free_all_blocks",
                     "pool.total_bytes()"),
}


@pytest.mark.parametrize("allocator", CUPY_ALLOCATORS)
def test_cupy(script, allocator):
    run = script(CUPY % CUPY_ALLOCATORS[allocator], needs=["cupy"])
    books_agree(run)
    assert run.told("own_made") >= [512 * MIB]
    assert run.told("own_empty") == [0]
    assert run.files == []


JAX = BOOKS + """
import jax, jax.numpy as jnp
kept = [jnp.full((1 << 24,), float(i)) for i in range(5)]
for array in kept:
    array.block_until_ready()
print("values", [float(array[7]) for array in kept])
stats = jax.devices()[0].memory_stats() or {}
tell("made", stats.get("pool_bytes") or sum(array.nbytes for array in kept))
"""
# What each of these counts as its own differs; beside it, XLA has small allocations.
JAX_SETTINGS = {
    "preallocated": {"XLA_PYTHON_CLIENT_PREALLOCATE": "true", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".2"},
    "growing": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    "platform": {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
}


@pytest.mark.parametrize("setting", JAX_SETTINGS)
def test_jax(script, setting):
    run = script(JAX, needs=["jax"], env=JAX_SETTINGS[setting])
    books_agree(run, more=1024 * MIB)
    assert run.files == []


TORCH_TWO = BOOKS + """
import torch
def both(moment):
    for device in (0, 1):
        tell(f"{moment}{device}", torch.cuda.memory_reserved(device), device)
one = torch.full((64 << 20,), 1.0, device="cuda:0")
two = torch.full((32 << 20,), 2.0, device="cuda:1")
both("made")
copied = one[:1000].to("cuda:1")
print("values", copied.sum().item(), two[3].item())
del one
with torch.cuda.device(1):
    torch.cuda.empty_cache()  # from the other device
both("freed")
"""


@pytest.mark.two_gpus
def test_torch_on_two_gpus(script):
    run = script(TORCH_TWO, needs=["torch"])
    books_agree(run)
    assert run.files == []


ALL_REDUCE = BOOKS + """
import os, torch, torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
values = torch.full((1 << 22,), rank + 1.0, device="cuda")
dist.all_reduce(values)
torch.cuda.synchronize()
if rank == 0:
    print("values", values[0].item(), values[-1].item())
tell(f"reduced{rank}", torch.cuda.memory_reserved(), rank)
dist.destroy_process_group()
"""


@pytest.mark.two_gpus
@pytest.mark.seconds(150)
def test_all_reduce_of_nccl_on_two_gpus(two_ranks):
    """NCCL's own buffers are live, too; torch does not count them."""
    bare, run = two_ranks(ALL_REDUCE, preload=False), two_ranks(ALL_REDUCE)
    assert run.stdout == bare.stdout
    assert "values 3.0 3.0" in run.stdout
    assert sorted(moments(run)) == ["reduced0", "reduced1"]
    books_agree(run, more=2048 * MIB)
    assert run.files == []

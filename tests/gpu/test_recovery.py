"""Recovery on silicon: neighbours that leave, the reserve, fallbacks, NCCL, and torch left alone."""
import sys

import pytest

import gpu_machine
from gpu_hosts import ACT, DRIVER, FILL, FIRST_KERNEL, outcomes, values
from hosts import MIB, PROGRAMS


def test_neighbour_that_ends_is_waited_for(host, program):
    run = host(program("scenario_5"), "ends", env={"GPUOOMSHIM_WAIT": "30s"})
    assert run.code == 0, run.stdout + run.stderr
    assert "allocation beside another process 0" in outcomes(run)
    (step,) = run.report.steps("wait")
    assert step["result"] == "helped"
    # It lives for two seconds; the driver takes a few more to clean up.
    assert 500_000_000 < step["duration_ns"] < 30_000_000_000


def test_neighbour_that_stays_is_waited_for_once(host, program):
    run = host(program("scenario_5"), "twice", env={"GPUOOMSHIM_WAIT": "1s"})
    waits = [step for report in run.reports for step in report.steps("wait")]
    assert waits[0]["result"] == "timed out"
    assert {step["result"] for step in waits[1:]} == {"skipped"}


def test_reserve_is_given_back_at_once_and_serves_cuMemAlloc(host, program):
    """A 32nd of the device is free and a 16th is asked for: the reserve is an eighth."""
    device = gpu_machine.gpu_bytes() or 16384 * MIB
    reserve = device // 8 // (64 * MIB) * 64
    run = host(program("recovery"), "again", env={"GPUOOMSHIM_RESERVE": f"{reserve}MiB"})
    assert outcomes(run)[0] == "asked 0", run.stdout + run.stderr
    (step,) = run.report.steps("reserve")
    assert step["result"] == "helped"
    assert step["freed_bytes"] >= (reserve - 64) * MIB
    assert step["duration_ns"] < 1_000_000_000
    assert run.report.ledger()["held_in_reserve"] == reserve * MIB


# Under a limit, so that managed memory of which the device lacks room is never asked for.
@pytest.mark.driver
@pytest.mark.parametrize("how", ["free", "free_async", "free_behind_work"])
@pytest.mark.parametrize("asked", ["full", "async"])
@pytest.mark.parametrize("way", ["managed", "host"])
def test_fallback_is_freed_by_whatever_the_host_calls(host, way, asked, how):
    run = host(PROGRAMS / "recovery.linked", asked, how,
               env={"GPUOOMSHIM_LIMIT": "8GiB", "GPUOOMSHIM_FALLBACK": way,
                    "GPUOOMSHIM_EXIT_REPORT": "1"})
    assert run.code == 0, run.stdout + run.stderr
    assert f"{how} 0" in outcomes(run)
    assert all(line.endswith("context 1, mode 1") for line in outcomes(run) if "there" in line)
    failure, at_exit = run.reports
    assert [row["way"] for row in failure.json["fallback"]] == [way]
    assert at_exit.json["fallback"] == []


def test_steps_end_as_on_the_simulated_device(host, program):
    run = host(program("recovery"), "pending")
    assert outcomes(run)[0] == "asked 0", run.stdout + run.stderr
    assert [step["result"] for step in run.report.steps("sync")] == ["helped"]
    run = host(program("recovery"), "hopeless")
    assert outcomes(run)[0] == "asked 2"
    assert [step["result"] for step in run.report.steps("sync")] == ["no help"]


@pytest.mark.parametrize("how", ["gives", "refuses"])
def test_capture_that_begins_during_recovery_is_not_ended_by_it(same, program, how):
    run = same(program("regress_capture_meanwhile"), how)
    assert outcomes(run) == ["asked 2", "end of capture 0"]
    (step,) = run.report.steps("flush")
    assert step["result"] == "stopped" and "a capture began meanwhile" in step["reason"]


def test_short_captures_beside_a_recovery_go_on(host, program):
    run = host(program("regress_capture_meanwhile"), "many")
    assert run.code == 0 and outcomes(run)[-1] == "end of capture 0", run.stdout + run.stderr


def test_free_that_waits_for_endless_work_holds_nobody_else_up(host, program):
    run = host(program("regress_stuck_stream"), "tiny",
               env={"GPUOOMSHIM_RETRY_BUDGET": "3s", "GPUOOMSHIM_FLUSH_BUDGET": "1s"})
    assert outcomes(run) in (["asked 0"], ["asked 2"]), run.stdout + run.stderr
    assert run.told("took_ms")[0] < 2500


# All that is free is taken past torch, so that no cache can serve, and no call fails before.
FULL = DRIVER + FILL + """
def fill():
    leave(2)
"""


@pytest.mark.gib(4)
def test_reserve_lets_a_kernel_be_loaded_when_the_device_is_full(host, python_file):
    path = python_file(FULL + FIRST_KERNEL + ACT, ["torch"])
    plenty = values(host(sys.executable, path, "plenty", preload=False))
    assert outcomes(host(sys.executable, path, "full", preload=False))[0].startswith("failed")
    run = host(sys.executable, path, "full",
               env={"GPUOOMSHIM_RESERVE": "256MiB", "GPUOOMSHIM_RETRY": "reserve"})
    assert values(run) == pytest.approx(plenty, rel=1e-4)
    assert any(step["result"] == "helped" for report in run.reports
               for step in report.steps("reserve")), run.stderr


REDUCE = FILL + """
import torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
ones = torch.full((1 << 20,), float(rank + 1)).cuda()
used = fill()
dist.all_reduce(ones)
torch.cuda.synchronize()
# One write for the whole line: both ranks write to the same pipe.
sys.stdout.write("outcome: rank %d value %s\\n" % (rank, float(ones[:4].cpu().sum())))
sys.stdout.flush()
dist.destroy_process_group()
"""


@pytest.mark.two_gpus
@pytest.mark.seconds(150)
def test_all_reduce_on_two_full_devices_is_rescued(two_ranks):
    run = two_ranks(REDUCE)
    assert sorted(outcomes(run)) == ["rank 0 value 12.0", "rank 1 value 12.0"]
    assert any(report.outcome == "recovered" for report in run.reports), run.stderr[-4000:]


CAUGHT = """
import torch
total = torch.cuda.mem_get_info()[1]
held = [torch.empty(total // 4, dtype=torch.uint8, device="cuda") for _ in range(3)]
try:
    torch.empty(total // 2, dtype=torch.uint8, device="cuda")
    print("outcome: no error")
except torch.OutOfMemoryError:
    print("outcome: caught")
held.clear()
torch.cuda.empty_cache()
again = torch.empty(total // 2, dtype=torch.uint8, device="cuda")
print("outcome: reserved", torch.cuda.memory_reserved() >= total // 2)
"""


def test_torch_that_catches_its_own_error_goes_on_as_without_the_library(script):
    run = script(CAUGHT, needs=["torch"])
    assert outcomes(run) == ["caught", "reserved True"]
    for report in run.reports:
        assert report.outcome in ("failed", "recovered-by-caller")
        assert all(step["result"] == "skipped" for step in report.steps("flush"))

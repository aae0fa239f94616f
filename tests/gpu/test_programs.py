"""The hosts of the simulated GPU on a real one: a difference is a bug in the simulator."""
import shutil
import subprocess

import pytest

from gpu_hosts import outcomes
from hosts import MIB, PROGRAMS


def test_pending_free_is_synchronized_and_the_allocation_succeeds(host, program):
    bare = host(program("scenario_3"), preload=False)
    assert "allocation behind a pending free 2" in outcomes(bare)
    run = host(program("scenario_3"))
    assert run.code == 0, run.stdout + run.stderr
    assert "allocation behind a pending free 0" in outcomes(run)
    assert run.report.outcome == "recovered"
    assert run.report.code in ("pending-free", "cache-held")


@pytest.mark.driver
@pytest.mark.parametrize("how", ["legacy", "per-thread", "own-pool", "two", "thread", "in-order",
                                 "physical", "rows"])
def test_pending_memory_serves_who_asks_however_it_was_freed_and_asked_for(host, how):
    bare = host(PROGRAMS / "pending_kinds.resolver", how, preload=False)
    assert bare.code == 0 and len(outcomes(bare)) == 1
    run = host(PROGRAMS / "pending_kinds.resolver", how)
    assert outcomes(run) == ["asked 0"], run.stdout + run.stderr
    assert outcomes(bare) == ["asked 0"] or run.report.outcome == "recovered"


def test_trimming_alone_frees_nothing_of_what_is_pending(host, program):
    run = host(program("scenario_3"), env={"GPUOOMSHIM_RETRY": "trim"})
    assert "allocation behind a pending free 2" in outcomes(run)
    (trim,) = run.reports[0].steps("trim")
    assert trim["result"] != "helped" and trim["freed_bytes"] == 0


def test_own_live_memory_is_exhausted_by_process(same, program):
    run = same(program("scenario_4"))
    assert (run.report.code, run.report.outcome) == ("exhausted-by-process", "failed")
    assert run.told("took_ms")[0] < 1000


def test_other_process_holds_the_memory(same, program):
    assert same(program("scenario_5"), "stays").reports[0].code == "exhausted-by-others"


def test_half_empty_blocks_are_fragmentation(same, program):
    report = same(program("scenario_6"), "2048").reports[-1]
    assert report.json["request"]["bytes"] == 4 * MIB
    assert report.code == "fragmented"
    # Half of the 1 MiB allocations were freed, and all of that is stuck.
    assert abs(report.ledger()["half_empty"] - 1024 * MIB) < 64 * MIB


def test_pieces_of_blocks_and_pools(same, program):
    run = same(program("fragments"))
    (report,) = [report for report in run.reports if report.json["kind"] == "snapshot"]
    fragments = report.device()["fragmentation"]
    assert abs(fragments["block_stuck_bytes"] - 256 * MIB) < 8 * MIB
    assert 600 <= fragments["pool_permille"] <= 700


def test_absurd_size_is_named(same, program):
    env = {"GPUSIM_FAIL": "cuLaunchKernel:209:1"}  # a real device refuses the module by itself
    assert same(program("scenario_8"), env=env).report.code == "request-too-large"


def test_pinned_memory_that_the_host_lacks_leaves_the_device_alone(same, program):
    report = same(program("host_memory"), "total").report
    assert report.code == "host-memory"
    assert all(step["result"] == "skipped" for step in report.json["recovery"])


def test_address_space_limit_is_named(same, program):
    assert same(program("address_limit")).report.code == "host-limit"


def test_capture_goes_on_and_its_graph_runs(same, program):
    run = same(program("capture_cached"))
    assert outcomes(run)[:2] == ["allocation during a capture 2", "end of capture 0"]
    assert outcomes(run)[-1] == "captured work ran 1"
    assert run.told("calls") == [0]
    assert {step["result"] for step in run.report.json["recovery"]} == {"skipped"}


def test_failing_calls_leave_what_the_driver_leaves(same, program):
    assert len(outcomes(same(program("refused_answers")))) == 9


def test_64_threads_that_fail_at_once_are_one_report(same, program):
    run = same(program("fail_together"), "64")
    assert (run.report.code, run.report.outcome) == ("exhausted-by-process", "failed")


def test_who_asks_for_less_and_less_is_left_alone(same, program):
    run = same(program("xla_shape"), PROGRAMS / "xla_extension.so", "3")
    refused = int(outcomes(run)[0].split()[1])
    assert run.told("survived") == [3 * refused]
    assert run.files == [] and run.lines_of_shim == []


def test_segment_that_grows_after_a_flush_is_left_alone(same, program):
    run = same(program("segments"), PROGRAMS / "libc10_segments.so", "survives")
    assert outcomes(run) == ["grown 0"] * 3
    assert run.told("survived") == [3]
    assert run.files == [] and run.lines_of_shim == []


def test_segment_that_cannot_grow_is_told_at_that_moment(same, program):
    run = same(program("segments"), PROGRAMS / "libc10_segments.so", "fails")
    assert outcomes(run) == ["too large 2", "with less in use 0"]
    assert run.report.code == "exhausted-by-process"
    assert run.report.ledger()["live_device"] > run.report.device()["total_bytes"] // 2


def test_every_kind_is_counted_and_nothing_remains(same, program):
    run = same(program("alloc_kinds"))
    alive, freed = run.told("live_bytes")
    assert alive > 0 and freed == 0
    assert run.files == []


def test_crossed_frees(same, program):
    assert same(program("refused_free")).told("live_bytes") == [MIB, 0]


def test_churning_threads_leave_nothing(same, program):
    assert same(program("churn"), "16", "500").told("live_bytes") == [0]


def test_child_after_fork(same, program):
    run = same(program("forked"))
    assert run.told("live_bytes") == [0]
    assert run.report.code == "forked"
    assert run.report.json["process"]["initialised_by"] == program("forked").name


def test_children_forked_amid_other_threads_get_their_error_and_end(same, program):
    run = same(program("forked_busy"), env={"GPUOOMSHIM_REPORT_MAX": "1"})
    assert {report.code for report in run.reports} == {"forked"}


@pytest.mark.driver
@pytest.mark.seconds(120)
def test_line_that_keeps_more_and_more_is_a_leak_and_the_victim_is_not(host):
    run = host(PROGRAMS / "leak.resolver", timeout=50)
    assert run.code == 0, run.stderr
    assert 1800 < int(outcomes(run)[0].split()[1]) < 2000
    assert run.report.code == "leak"
    assert "where it failed, is not the cause" in " ".join(run.report.json["verdict"]["evidence"])


@pytest.mark.two_gpus
def test_two_gpus_are_two_ledgers_and_the_full_one_is_blamed(same, program):
    report = same(program("two_gpus")).report
    assert (report.code, report.json["verdict"]["device"]) == ("exhausted-by-process", 1)
    assert report.ledger(0)["live_device"] == 64 * MIB


@pytest.mark.driver
@pytest.mark.parametrize("question", ["abi", "resolver-abi", "per-thread", "missing"])
def test_lookup_answers_are_the_same(host, question):
    bare = host(PROGRAMS / "lookup", question, preload=False)
    run = host(PROGRAMS / "lookup", question)
    assert (run.code, run.stdout) == (bare.code, bare.stdout), run.stderr


NVCC_PROGRAM = r"""
#include <cstdio>
__global__ void fill(int *data) { data[threadIdx.x] = threadIdx.x; }
int main()
{
    int *data, sum = 0, host[32];
    void *refused = nullptr;
    size_t free_bytes, total;
    if (cudaMalloc(&data, sizeof(host)) != cudaSuccess) return 1;
    fill<<<1, 32>>>(data);
    if (cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    for (int value : host) sum += value;
    cudaMemGetInfo(&free_bytes, &total);
    int failed = cudaMalloc(&refused, free_bytes + (1 << 30));
    int last = cudaGetLastError();
    printf("sum %d failed %d last %d\n", sum, failed, last);
    return cudaFree(data);
}
"""


def test_program_with_static_cudart(same, tmp_path):
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc here")
    source, binary = tmp_path / "static.cu", tmp_path / "static"
    source.write_text(NVCC_PROGRAM)
    subprocess.run(["nvcc", "-o", binary, source], check=True, capture_output=True, timeout=50)
    run = same(binary)
    assert run.stdout == "sum 496 failed 2 last 2\n"
    # Free plus one GiB: too much for this process beside what the driver keeps.
    assert run.report.code in ("exhausted-by-process", "exhausted-by-others", "request-too-large")

"""The hosts of the simulated GPU on a real one: a difference is a bug in the simulator."""
import shutil
import subprocess

import pytest

from hosts import BUILD, LOAD_PATHS, MIB, PROGRAMS, same_answers as same


@pytest.fixture(params=LOAD_PATHS)
def program(request):
    return lambda name: PROGRAMS / f"{name}.{request.param}"


def test_pending_free_is_synchronized_and_the_allocation_succeeds(host, program):
    bare = host(program("scenario_3"), preload=False)
    assert "allocation behind a pending free 2\n" in bare.stdout
    run = host(program("scenario_3"))
    assert run.code == 0, run.stdout + run.stderr
    assert "allocation behind a pending free 0\n" in run.stdout
    assert run.report.outcome == "recovered"
    assert run.report.code in ("pending-free", "cache-held")


def test_own_live_memory_is_exhausted_by_process(host, program):
    report = same(host, program("scenario_4")).report
    assert (report.code, report.outcome) == ("exhausted-by-process", "failed")


def test_other_process_holds_the_memory(host, program):
    run = same(host, program("scenario_5"), "stays")
    assert run.reports[0].code == "exhausted-by-others"


def test_half_empty_blocks_are_fragmentation(host, program):
    report = same(host, program("scenario_6"), "2048").reports[-1]
    assert report.json["request"]["bytes"] == 4 * MIB
    assert report.code == "fragmented"
    # Half of the 1 MiB allocations were freed, and all of that is stuck.
    assert abs(report.ledger()["half_empty"] - 1024 * MIB) < 64 * MIB


def test_absurd_size_is_named(host, program):
    assert same(host, program("scenario_8")).report.code == "request-too-large"


def test_address_space_limit_is_named(host, program):
    assert same(host, program("address_limit")).report.code == "host-limit"


def test_every_kind_is_counted_and_nothing_remains(host, program):
    run = same(host, program("alloc_kinds"))
    alive, freed = run.told("live_bytes")
    assert alive > 0 and freed == 0
    assert run.files == []


def test_crossed_frees(host, program):
    run = same(host, program("refused_free"))
    assert run.told("live_bytes") == [MIB, 0]


def test_churning_threads_leave_nothing(host, program):
    assert same(host, program("churn"), "16", "500").told("live_bytes") == [0]


def test_child_after_fork(host, program):
    assert same(host, program("forked")).told("live_bytes") == [0]


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


def test_program_with_static_cudart(host, tmp_path):
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc here")
    source, binary = tmp_path / "static.cu", tmp_path / "static"
    source.write_text(NVCC_PROGRAM)
    subprocess.run(["nvcc", "-o", binary, source], check=True, capture_output=True)
    run = same(host, binary)
    assert run.stdout == "sum 496 failed 2 last 2\n"
    # Free plus one GiB: too much for this process beside what the driver keeps.
    assert run.report.code in ("exhausted-by-process", "exhausted-by-others", "request-too-large")


def test_bench_runs(host):
    if not (BUILD / "tests/bench/bench").exists():
        pytest.skip("bench is not built")
    run = host(BUILD / "tests/bench/bench", "pairs")
    assert run.code == 0
    print(run.stdout)

"""What the scenarios promise beside their verdict: time, noise, and what is left behind.

Times are those of the fastest of many rounds, where there are rounds: what a loaded
machine adds is not the library's.
"""
import collections
import pathlib

import pytest

from hosts import MIB, PROGRAMS

ROUNDS = "20"
SYNCHRONIZING = ("Synchronize", "Query", "EventRecord", "WaitEvent", "Memcpy", "Memset", "TrimTo")
EVERYTHING = {"GPUOOMSHIM_RESERVE": "64MiB", "GPUOOMSHIM_WAIT": "100ms",
              "GPUOOMSHIM_FALLBACK": "async-to-sync,managed,host", "GPUOOMSHIM_FALLBACK_LIMIT": "0"}


def outcomes(run):
    prefix = "outcome: "
    return [line[len(prefix):] for line in run.stdout.splitlines() if line.startswith(prefix)]


# --- who retries by itself -------------------------------------------------------------------

def added_us(bare, run):
    (alone,), (beside,) = bare.told("fastest_us"), run.told("fastest_us")
    return beside - alone


def assert_left_alone(bare, run, survived):
    """A counter, and nothing else."""
    assert (bare.code, run.code) == (0, 0), run.stdout + run.stderr
    assert run.stdout == bare.stdout
    assert run.files == [] and run.lines_of_shim == []
    assert run.told("survived") == [survived]


def test_torch_that_frees_its_cache_itself_costs_a_millisecond_at_most(host):
    command = (PROGRAMS / "runtime_own_cache.runtime", PROGRAMS / "libc10_cuda.so", ROUNDS)
    bare, run = host(*command, preload=False), host(*command)
    assert_left_alone(bare, run, int(ROUNDS))
    assert added_us(bare, run) < 1000
    assert outcomes(run) == ["last error 0"]


def test_xla_that_asks_for_less_and_less_costs_a_millisecond_for_each_refusal(host, program):
    command = (program("xla_shape"), PROGRAMS / "xla_extension.so", ROUNDS)
    bare, run = host(*command, preload=False), host(*command)
    assert outcomes(bare) == ["refused 3 times before something fits"]
    assert_left_alone(bare, run, 3 * int(ROUNDS))
    assert added_us(bare, run) < 3000


# --- nothing helps ---------------------------------------------------------------------------

def test_failure_that_nothing_can_help_takes_a_tenth_of_a_second(same, program):
    runs = [same(program("scenario_4")) for _ in range(3)]
    assert min(run.told("took_ms")[0] for run in runs) < 100
    assert all("fragment" not in run.report.json["verdict"]["summary"] for run in runs)


@pytest.mark.parametrize("env", [{}, EVERYTHING], ids=["default", "everything"])
def test_failing_calls_leave_what_the_driver_leaves(same, program, env):
    run = same(program("refused_answers"), env=env)
    assert len(outcomes(run)) == 9
    assert all(" 2, " in line for line in outcomes(run))
    assert len(run.reports) > 1


@pytest.mark.parametrize("env", [{}, EVERYTHING], ids=["default", "everything"])
def test_failing_calls_of_cudart_leave_its_last_error(same, env):
    run = same(PROGRAMS / "runtime_refused.runtime", env=env)
    assert len(outcomes(run)) == 5
    assert all(line.endswith(", peek 2, last 2, last 0") for line in outcomes(run))


def test_trimming_alone_frees_nothing_of_what_is_pending(host, program):
    run = host(program("scenario_3"), env={"GPUOOMSHIM_RETRY": "trim"})
    assert "allocation behind a pending free 2" in outcomes(run)
    (trim,) = run.reports[0].steps("trim")
    assert trim["result"] != "helped" and trim["freed_bytes"] == 0


PENDING = ["legacy", "per-thread", "own-pool", "two", "thread", "in-order", "physical", "rows"]


@pytest.mark.parametrize("how", PENDING)
def test_pending_memory_serves_who_asks_however_it_was_freed_and_asked_for(host, program, how):
    bare = host(program("pending_kinds"), how, preload=False)
    assert outcomes(bare) == ["asked 2"], bare.stderr
    run = host(program("pending_kinds"), how)
    assert outcomes(run) == ["asked 0"], run.stderr
    assert (run.report.code, run.report.outcome) == ("pending-free", "recovered")
    assert [step["result"] for step in run.report.json["recovery"]] == ["helped"]


def test_what_is_pending_on_another_device_is_left_alone(same, program):
    run = same(program("pending_kinds"), "device", env={"GPUSIM_DEVICES": "2"})
    assert outcomes(run) == ["asked 2"]
    assert (run.report.code, run.report.outcome) == ("exhausted-by-process", "failed")
    assert {step["result"] for step in run.report.json["recovery"]} == {"skipped"}


# --- one story, one report -------------------------------------------------------------------

def test_leak_surfaces_in_the_other_line_at_its_iteration(same, program):
    run = same(program("leak"))
    # 1,920 times 8 MiB of 15,872 leave 512; one more leaves too little for the 512.
    assert outcomes(run)[0] == "iteration 1921"
    assert (run.report.code, run.report.outcome) == ("leak", "failed")


def test_64_threads_that_fail_at_once_are_one_line_and_one_report(same, program):
    run = same(program("fail_together"), "64")
    assert (run.report.code, run.report.outcome) == ("exhausted-by-process", "failed")
    assert len(run.lines_of_shim) == 1
    assert [len(run.report.steps(step)) for step in ("sync", "trim", "flush")] == [1, 1, 1]


def test_threads_whom_the_driver_refuses_one_after_the_other_are_one_report(same, program):
    """The last of them hears of it long after the first one's story has ended."""
    run = same(program("fail_together"), "64", env={"GPUSIM_REFUSE_TIME": "5000"})
    assert (run.report.code, run.report.outcome) == ("exhausted-by-process", "failed")
    assert len(run.lines_of_shim) == 1


# --- while a stream is captured --------------------------------------------------------------

def test_capture_goes_on_and_its_graph_runs(same, program):
    run = same(program("capture_cached"), env=EVERYTHING)
    assert outcomes(run) == ["allocation during a capture 2", "end of capture 0", "instantiate 0",
                             "launch 0", "synchronize 0", "captured work ran 1"]
    assert run.told("calls") == [0]
    report = run.report
    assert (report.code, report.outcome) == ("pending-free", "failed")
    assert {step["result"] for step in report.json["recovery"]} == {"skipped"}
    assert "captur" in report.text


# --- who and where ---------------------------------------------------------------------------

def test_neighbour_is_named_by_pid_and_program(same, program, tmp_path):
    run = same(program("scenario_5"), "stays", env={"GPUSIM_STATE": str(tmp_path / "state")})
    (pid,) = [int(line.split("=")[1]) for line in run.stderr.splitlines()
              if line.startswith("holder: pid=")]
    (holder,) = [p for p in run.reports[0].json["processes"] if p["pid"] == pid]
    assert holder["name"] == "memory-holder"
    screen = run.reports[0].text.split("VERDICT")[0]
    assert str(pid) in screen and "memory-holder" in screen


def test_sites_that_pin_half_empty_blocks_are_in_the_advice(same, program):
    report = same(program("scenario_6"), "1024").reports[-1]
    fragments = report.device()["fragmentation"]
    assert fragments["block_stuck_bytes"] == 512 * MIB
    pins = f"{pathlib.Path(program('scenario_6')).name}+0x"
    assert any(pins in line for line in report.json["verdict"]["advice"]), \
        report.json["verdict"]["advice"]


def test_absurd_size_is_told_as_the_negative_number_that_it_is(same, program):
    report = same(program("scenario_8"), env={"GPUSIM_FAIL": "cuLaunchKernel:209:1"}).report
    assert {step["result"] for step in report.json["recovery"]} <= {"skipped"}
    assert "-4096" in report.text.replace("−", "-").replace(",", "")


def test_child_is_told_which_library_initialised(same, program):
    report = same(program("forked")).report
    assert report.json["process"]["initialised_by"] == program("forked").name
    assert f"cuInit came from {program('forked').name}" in report.text


# --- nothing failed --------------------------------------------------------------------------

def added_synchronization(host, tmp_path, command):
    """Calls of the driver that the host alone does not make."""
    traces = [tmp_path / "bare", tmp_path / "with"]
    for trace in traces:
        run = host(*command, preload=trace.name == "with", env={"GPUSIM_TRACE": str(trace)})
        assert run.code == 0, run.stdout + run.stderr
    bare, beside = (collections.Counter(line.split()[0] for line in trace.read_text().splitlines())
                    for trace in traces)
    assert sum(bare.values()) > 10
    return [call for call in beside - bare if any(word in call for word in SYNCHRONIZING)]


@pytest.mark.parametrize("words", ["alloc_kinds", "churn 2 50", "refused_free", "own_vmm"])
def test_no_synchronization_is_added_where_nothing_fails(host, program, tmp_path, words):
    name, *arguments = words.split()
    assert added_synchronization(host, tmp_path, [program(name), *arguments]) == []


def test_no_synchronization_is_added_where_the_caller_helps_itself(host, program, tmp_path):
    xla = [program("xla_shape"), PROGRAMS / "xla_extension.so", ROUNDS]
    assert added_synchronization(host, tmp_path, xla) == []


def test_synchronization_that_helps_is_seen_to_be_added(host, program, tmp_path):
    """Else the two before would prove nothing."""
    assert "cuEventQuery" in added_synchronization(host, tmp_path, [program("scenario_3")])

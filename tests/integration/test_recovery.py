"""Each step of recovery with each way it can end; nothing of the host's is changed by any."""
import re
import signal
import time

import pytest

from hosts import MIB, PROGRAMS, ROOT

RESERVE = {"GPUOOMSHIM_RESERVE": "1GiB"}
MANAGED = {"GPUOOMSHIM_FALLBACK": "managed"}
PINNED = {"GPUOOMSHIM_FALLBACK": "host"}
# What the host synchronized, the books count as pending: sync would do it all.
TRIM = {"GPUOOMSHIM_RETRY": "trim"}
SHORT = {"GPUOOMSHIM_RETRY_BUDGET": "100ms", "GPUOOMSHIM_WAIT": "400ms",
         "GPUOOMSHIM_FLUSH_BUDGET": "300ms"}

# step, host and situation, outcome, reason given, settings.  The program's own cuMemAlloc calls
# of `full` are 1 and 2, the one that fails is 3 and the retry 4; of `idle` the first one fails.
MATRIX = [
    ("reserve", "recovery full", "helped", "", RESERVE),
    ("reserve", "recovery full", "no help", "", {**RESERVE, "GPUSIM_FAIL": "cuMemAlloc_v2:2:4"}),
    ("reserve", "recovery full", "error", "the driver did not take the reserve back",
     {**RESERVE, "GPUSIM_FAIL": "cuMemRelease:999"}),
    ("reserve", "recovery hopeless", "skipped", "the reserve would be too little", RESERVE),
    ("sync", "recovery pending", "helped", "", {}),
    ("sync", "recovery hopeless", "no help", "", {}),
    ("sync", "recovery pending", "timed out", "a stream did not finish in time",
     {"GPUOOMSHIM_RETRY_BUDGET": "100ms"}),
    ("sync", "recovery pending", "error", "a stream reported an error",
     {"GPUSIM_FAIL": "cuEventRecord:400"}),
    ("sync", "recovery pending", "error", "a stream reported an error",
     {"GPUSIM_FAIL": "cuEventCreate:2"}),
    ("trim", "recovery idle", "helped", "", {**TRIM, "GPUSIM_FAIL": "cuMemAlloc_v2:2:1"}),
    ("trim", "recovery idle", "no help", "", {**TRIM, "GPUSIM_FAIL": "cuMemAlloc_v2:2"}),
    ("trim", "recovery idle", "error", "a pool could not be trimmed",
     {**TRIM, "GPUSIM_FAIL": "cuMemAlloc_v2:2,cuMemPoolTrimTo:1"}),
    ("flush", "flush_callback", "helped", "keeper", {}),
    ("flush", "flush_callback refuses", "no help", "keeper returned 42", {}),
    ("flush", "flush_callback late", "timed out", "keeper did not answer in time", SHORT),
    ("flush", "regress_capture_meanwhile gives", "stopped",
     "a capture began meanwhile, so the driver was not asked again", {}),
    ("wait", "scenario_5 ends", "helped", "other processes gave back enough",
     {"GPUOOMSHIM_WAIT": "30s"}),
    ("wait", "scenario_5 ends", "no help", "other processes gave back enough",
     {"GPUOOMSHIM_WAIT": "30s", "GPUSIM_FAIL": "cuMemAlloc_v2:2:2"}),
    ("wait", "scenario_5 stays", "timed out", "other processes kept their memory", SHORT),
    ("fallback", "recovery full", "helped",
     "managed memory: slower where its pages are not on the device", MANAGED),
    ("fallback", "recovery async", "helped",
     "pinned host memory: much slower, each access goes over the bus", PINNED),
    ("fallback", "recovery full", "no help", "managed: over GPUOOMSHIM_FALLBACK_LIMIT",
     {**MANAGED, "GPUOOMSHIM_FALLBACK_LIMIT": "256MiB"}),
    ("fallback", "recovery full", "error", "managed: error 801",
     {**MANAGED, "GPUSIM_FAIL": "cuMemAllocManaged:801"}),
    ("fallback", "recovery full", "error", "host: error 1",
     {**PINNED, "GPUSIM_FAIL": "cuMemHostGetDevicePointer_v2:1"}),
]


@pytest.fixture
def situation(host, program, tmp_path):
    """Run "host words…"; hosts that start another process share a device with it."""
    def run(words, env, **options):
        name, *arguments = words.split()
        env = {"GPUSIM_STATE": str(tmp_path / "state"), **env}
        return host(program(name), *arguments, env=env, **options)

    return run


def outcomes(run):
    prefix = "outcome: "
    return [line[len(prefix):] for line in run.stdout.splitlines() if line.startswith(prefix)]


def assert_unmoved(run):
    """Every line about the thread's state says that it is as the host left it."""
    for line in outcomes(run):
        if line.startswith("still there"):
            assert line == "still there: context 1, mode 1"


def log_lines(report, step):
    """The step's rows of the table RECOVERY, as a person reads them."""
    table = report.text.split("\nRECOVERY\n")[1].split("\n\n")[0]
    return [line.rstrip() for line in table.splitlines() if line.startswith(f"  {step} ")]


@pytest.mark.parametrize("step, words, result, reason, env", MATRIX,
                         ids=[f"{row[0]}-{row[2]}-{i}" for i, row in enumerate(MATRIX)])
def test_each_step_tells_how_it_ended_and_moves_nothing(situation, step, words, result, reason,
                                                        env):
    bare = situation(words, {k: v for k, v in env.items() if k.startswith("GPUSIM_FAIL")},
                     preload=False)
    run = situation(words, env)
    report = run.reports[0]
    (line,) = report.steps(step)
    assert (line["result"], line["reason"]) == (result, reason), report.json["recovery"]
    (row,) = log_lines(report, step)
    assert re.fullmatch(rf"  {step} +{result} +[0-9.]+ [KMGT]?i?B +[0-9.]+ [nmu]?s +"
                        rf"{line['cuda_result']} *{re.escape(reason)}", row), row
    assert report.outcome == ("recovered" if result == "helped" else report.outcome)
    assert_unmoved(run)
    if result == "error" and step in ("reserve", "trim", "fallback"):
        assert line["cuda_result"] not in (0, 2)
    if report.outcome != "recovered" and step != "wait":
        assert (run.code, run.stdout) == (bare.code, bare.stdout)


def test_steps_that_nobody_asked_for_leave_no_line(situation):
    steps = [step["step"] for step in situation("recovery full", {}).report.json["recovery"]]
    assert steps == ["sync", "trim", "flush"]


def test_retry_off_switches_the_opt_in_steps_off_too(situation):
    run = situation("recovery full", {**RESERVE, **MANAGED, "GPUOOMSHIM_WAIT": "9s",
                                      "GPUOOMSHIM_RETRY": "off"})
    assert outcomes(run)[0] == "asked 2"
    assert all(step["result"] == "skipped" for step in run.report.json["recovery"])


def test_word_without_its_setting_is_skipped_and_says_so(situation):
    run = situation("recovery full", {"GPUOOMSHIM_RETRY": "wait"})
    (step,) = run.report.steps("wait")
    assert (step["result"], step["reason"]) == ("skipped", "its own setting is not given")


# --- reserve ---------------------------------------------------------------------------------

def test_reserve_is_a_line_of_its_own_and_not_the_hosts(situation):
    run = situation("recovery again", {**RESERVE, "GPUOOMSHIM_EXIT_REPORT": "1"})
    before, at_exit = run.reports
    assert before.ledger()["held_in_reserve"] == 1024 * MIB
    assert before.ledger()["live_device"] == 14336 * MIB  # 15,872 - 512 - 1024
    assert before.outcome == "recovered"
    # Given up at the failure, and taken again when there was room.
    assert at_exit.ledger()["held_in_reserve"] == 1024 * MIB


def test_reserve_that_does_not_fit_is_one_line_and_no_error(situation):
    run = situation("recovery full", {"GPUOOMSHIM_RESERVE": "20GiB"})
    assert outcomes(run)[0] == "asked 2"
    assert len([line for line in run.lines_of_shim if "could not be held back" in line]) == 1
    assert run.report.ledger()["held_in_reserve"] == 0


def test_reserve_that_would_be_too_little_is_kept(situation):
    run = situation("recovery full", {"GPUOOMSHIM_RESERVE": "128MiB"})
    (step,) = run.report.steps("reserve")
    assert (step["result"], step["reason"]) == ("skipped", "the reserve would be too little")


# --- wait ------------------------------------------------------------------------------------

def test_later_failures_do_not_wait_again_for_who_stayed(situation):
    run = situation("scenario_5 twice", {"GPUOOMSHIM_WAIT": "1s"})
    waits = [step for report in run.reports for step in report.steps("wait")]
    assert [step["result"] for step in waits][0] == "timed out"
    assert {step["result"] for step in waits[1:]} == {"skipped"}
    assert waits[0]["duration_ns"] >= 900_000_000


def test_small_process_that_comes_and_goes_makes_nobody_wait_again(situation):
    run = situation("scenario_5 visited", {"GPUOOMSHIM_WAIT": "1s"})
    waits = [step for report in run.reports for step in report.steps("wait")]
    assert [step["result"] for step in waits] == ["timed out", "skipped", "skipped"]


def test_first_context_on_a_full_device_waits_for_who_fills_it(situation):
    bare = situation("scenario_5 first", {}, preload=False)
    assert outcomes(bare) == ["first context 2"]
    run = situation("scenario_5 first", {"GPUOOMSHIM_WAIT": "30s"})
    assert outcomes(run) == ["first context 0"]
    report = run.report
    assert (report.outcome, report.code) == ("recovered", "exhausted-by-others")
    assert report.ledger()["children"] > 15000 * MIB
    begin, end = [line for line in run.lines_of_shim if "wait" in line or "room" in line]
    assert "give back some memory on GPU 0" in begin and "there is room" in end


def test_first_context_on_a_full_device_names_who_fills_it(situation):
    report = situation("scenario_5 first", {}).report
    assert (report.outcome, report.code) == ("failed", "exhausted-by-others")
    report = situation("scenario_5 first", {"GPUSIM_NVML": "empty"}).report
    assert report.ledger()["hidden"] > 15000 * MIB


def test_launch_on_a_full_device_waits_for_some_memory(situation):
    run = situation("scenario_5 launch", {"GPUOOMSHIM_WAIT": "30s"})
    assert outcomes(run) == ["launch 0"]
    assert any("give back some memory" in line for line in run.lines_of_shim)


def test_waiting_says_when_it_begins_and_how_it_ended(situation):
    run = situation("scenario_5 ends", {"GPUOOMSHIM_WAIT": "30s"})
    begin, end, _ = run.lines_of_shim
    assert "for at most 30.0 s (GPUOOMSHIM_WAIT)" in begin and "there is room after" in end
    assert "allocation beside another process 0" in outcomes(run)


def test_nobody_is_waited_for_where_the_process_itself_holds_it(situation):
    run = situation("recovery full", {"GPUOOMSHIM_WAIT": "30s"})
    (step,) = run.report.steps("wait")
    assert step["result"] == "skipped"
    assert step["duration_ns"] == 0


# --- fallback --------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["free", "free_async", "free_behind_work"])
@pytest.mark.parametrize("asked", ["full", "async"])
@pytest.mark.parametrize("way", ["managed", "host"])
def test_fallback_is_freed_by_whatever_the_host_calls(situation, way, asked, how):
    run = situation(f"recovery {asked} {how}", {"GPUOOMSHIM_FALLBACK": way,
                                                "GPUOOMSHIM_EXIT_REPORT": "1"})
    assert run.code == 0, run.stdout
    assert f"{how} 0" in outcomes(run)
    assert_unmoved(run)
    failure, at_exit = run.reports
    (row,) = failure.json["fallback"]
    assert (row["way"], row["live_bytes"], row["live_count"]) == (way, 1024 * MIB, 1)
    assert "FALLBACK: slower memory" in failure.text
    assert "slower" in failure.steps("fallback")[0]["reason"]
    assert any("slower" in line for line in run.lines_of_shim)
    assert at_exit.json["fallback"] == []
    assert sum(at_exit.live_bytes_by_kind().values()) == 0


@pytest.mark.parametrize("how", ["free", "free_async", "free_behind_work"])
def test_stream_ordered_request_may_be_served_by_plain_memory(situation, how):
    """The pool refuses, though the device has room."""
    run = situation(f"recovery async {how}",
                    {"GPUOOMSHIM_FALLBACK": "async-to-sync", "GPUSIM_MEMORY": "20480",
                     "GPUSIM_FAIL": "cuMemAllocAsync:2"})
    assert outcomes(run)[0] == "asked 2"  # 512 MiB are free: not by cuMemAlloc either
    run = situation(f"recovery async {how}",
                    {**RESERVE, "GPUOOMSHIM_FALLBACK": "async-to-sync", "GPUSIM_FAIL":
                     "cuMemAllocAsync:2"})
    assert outcomes(run)[0] == "asked 0"
    assert f"{how} 0" in outcomes(run)
    (row,) = run.report.json["fallback"]
    assert row["way"] == "async-to-sync"
    assert run.told("live_count") == [3, 1]


@pytest.mark.parametrize("way, freed_by", [("managed", "cuMemFree_v2"), ("host", "cuMemFreeHost")])
@pytest.mark.parametrize("moment, outcomes_of_frees", [
    ("without", ["free 201", "free in order 0"]),
    ("without_async", ["free in order 201", "free 0"]),
    ("joined", ["refused while captured: 1", "end of capture 0", "free 0"]),
    ("elsewhere", ["free in order 0"]),
    ("late", ["free in order 0"]),
])
def test_fallback_is_freed_once_and_in_time(situation, tmp_path, way, freed_by, moment,
                                            outcomes_of_frees):
    """After a free that was refused, in a capture, for another context's stream, without one."""
    trace = tmp_path / "trace"
    run = situation(f"regress_fallback_frees {moment}",
                    {"GPUOOMSHIM_FALLBACK": way, "GPUOOMSHIM_EXIT_REPORT": "1",
                     "GPUSIM_MEMORY": "4096", "GPUSIM_DEVICES": "2", "GPUSIM_TRACE": str(trace)})
    assert run.code == 0, run.stdout + run.stderr
    assert outcomes(run) == ["asked 0", *outcomes_of_frees]
    calls = trace.read_text().splitlines()
    others = {"cuMemFree_v2": 2, "cuMemFreeHost": 0}  # of the rest and the last memory
    others["cuMemFree_v2"] += moment == "late"  # of NULL
    assert calls.count(f"{freed_by} 0") == others[freed_by] + 1
    end = next((i for i, call in enumerate(calls) if call.startswith("cuDevicePrimaryCtxReset")),
               len(calls))
    assert not [call for call in calls[end:] if call.startswith("cuEvent")]
    at_exit = run.reports[-1]
    assert at_exit.json["fallback"] == []
    assert sum(at_exit.live_bytes_by_kind().values()) == 0


def test_ways_are_tried_in_order_and_each_says_why_not(situation):
    run = situation("recovery async", {"GPUOOMSHIM_FALLBACK": "host,managed,async-to-sync",
                                       "GPUOOMSHIM_FALLBACK_LIMIT": "0"})
    (step,) = run.report.steps("fallback")
    assert step["reason"] == ("async-to-sync: error 2; managed: over GPUOOMSHIM_FALLBACK_LIMIT; "
                              "host: over GPUOOMSHIM_FALLBACK_LIMIT")


# --- a death in the middle -------------------------------------------------------------------

@pytest.mark.parametrize("words, call, env", [
    ("recovery full", "cuMemRelease", RESERVE),
    ("recovery pending", "cuEventQuery", {}),
    ("recovery idle", "cuMemPoolTrimTo", {**TRIM, "GPUSIM_FAIL": "cuMemAlloc_v2:2:1"}),
    ("flush_callback", "cuMemFree_v2", {}),
    ("scenario_5 stays", "cuMemGetInfo_v2:12", {"GPUOOMSHIM_WAIT": "30s"}),
    ("recovery full", "cuMemAllocManaged", MANAGED),
])
def test_kill_in_the_middle_of_a_step_leaves_a_readable_report(situation, words, call, env):
    run = situation(words, {**env, "GPUSIM_KILL": call})
    assert run.code == -signal.SIGKILL
    (left,) = run.left
    assert left.outcome == "failed"
    assert left.text.startswith("gpuoomshim")
    assert run.files == run.drafts and len(run.drafts) == 1


# --- many at once ----------------------------------------------------------------------------

def test_64_threads_share_one_wait_and_one_report(situation):
    run = situation("scenario_5 many", {"GPUOOMSHIM_WAIT": "30s"})
    assert outcomes(run) == ["one of many 0"] * 64
    assert run.report.outcome == "recovered"
    assert len([line for line in run.lines_of_shim if "waiting for other" in line]) == 1


def test_64_threads_for_whom_nothing_helps_leave_one_report(situation):
    run = situation("fail_together 64", {**RESERVE, **MANAGED, "GPUOOMSHIM_FALLBACK_LIMIT": "0",
                                         "GPUOOMSHIM_WAIT": "2s"})
    assert run.report.outcome == "failed"


# --- where nothing may be tried --------------------------------------------------------------

EVERYTHING = {**RESERVE, "GPUOOMSHIM_FALLBACK": "async-to-sync,managed,host",
              "GPUOOMSHIM_WAIT": "5s"}


@pytest.mark.parametrize("name", ["scenario_8", "forked", "address_limit"])
def test_opt_in_steps_change_nothing_where_nothing_can_help(situation, name):
    """An absurd size, a child of fork; an address limit, where managed memory fails as well."""
    env = {"GPUSIM_FAIL": "cuLaunchKernel:209:1"} if name == "scenario_8" else {}
    bare = situation(name, env, preload=False)
    started = time.monotonic()
    run = situation(name, {**EVERYTHING, **env})
    assert time.monotonic() - started < 20
    assert (run.code, run.stdout) == (bare.code, bare.stdout), run.stderr
    for report in run.reports:
        assert report.outcome == "failed"
        assert all(step["result"] != "helped" for step in report.json["recovery"])


@pytest.fixture
def stubs(host, python):
    """Run a situation of flush_host.py: stand-ins for torch and NCCL."""
    def run(*words, env=None, **options):
        return host(python, ROOT / "tests" / "programs" / "flush_host.py", *words,
                    env={"STUBS": str(PROGRAMS), **(env or {})}, **options)

    return run


def test_nothing_is_tried_or_taken_during_a_capture(stubs):
    bare = stubs("capturing", preload=False)
    run = stubs("capturing", env={**EVERYTHING, "GPUOOMSHIM_RESERVE": "64MiB"})
    assert outcomes(run) == outcomes(bare)
    assert all(step["result"] == "skipped" for step in run.report.json["recovery"])


def test_reserve_serves_torch_from_inside_its_own_allocator(stubs):
    assert outcomes(stubs("own_reserved", env={"GPUOOMSHIM_RESERVE": "off"})) == \
        ["torch asks for itself 0"]
    run = stubs("own_reserved", env=RESERVE)
    assert outcomes(run) == ["torch asks for itself 0"]
    assert run.told("emptied") == [0]
    assert [step["result"] for step in run.report.steps("reserve")] == ["helped"]


def test_reserve_lets_a_kernel_be_loaded_when_the_device_is_full(stubs):
    run = stubs("launch", env={"GPUOOMSHIM_RESERVE": "64MiB", "GPUOOMSHIM_RETRY": "reserve",
                               "LEFT": "448"})
    assert outcomes(run) == ["launch 0"]
    assert run.report.json["request"]["api"] == "cuLaunchKernel"
    assert [step["result"] for step in run.report.steps("reserve")] == ["helped"]


@pytest.mark.parametrize("limit, result", [("8GiB", 0), ("1GiB", 2)])
def test_runtime_sees_no_error_after_a_fallback_and_the_old_one_without(host, limit, result):
    run = host(PROGRAMS / "runtime_recovered.runtime",
               env={**MANAGED, "GPUOOMSHIM_RETRY": "fallback", "GPUOOMSHIM_FALLBACK_LIMIT": limit})
    assert run.code == 0, run.stdout
    assert outcomes(run) == [f"allocation behind a pending free {result}", "last error agrees 1"]


# --- what the steps make of the verdict ------------------------------------------------------


def test_count_that_sticks_is_not_taken_for_pending_memory(same, program):
    report = same(program("sticking_count"), "full").report
    (sync,) = report.steps("sync")
    assert (sync["result"], sync["freed_bytes"]) == ("no help", 0)
    assert (report.code, report.json["verdict"]["confidence"]) == ("exhausted-by-process", "proven")
    ledger = report.ledger()
    assert (ledger["pool_pending"], ledger["live_pool"], ledger["residual"]) == (0, 0, 0)
    assert "The streams with freed memory were waited for: nothing came back." in report.text
    assert not [line for line in report.json["verdict"]["advice"] if "ynchronize" in line]


def test_count_that_sticks_proves_nothing_of_what_is_pending(situation):
    report = situation("sticking_count pending", {}).report
    assert (report.outcome, report.code) == ("recovered", "pending-free")
    assert report.json["verdict"]["confidence"] == "likely"
    assert report.steps("sync")[0]["freed_bytes"] >= report.json["verdict"]["short_bytes"]


# The driver refuses whatever is done: what was tried is not the reason, nor advised again.
IN_VAIN = [
    ("recovery pending",
     {"GPUOOMSHIM_RETRY": "sync", "GPUSIM_FAIL": "cuMemAlloc_v2:2:3"}, "pending-free",
     "waited for: ", "ynchronize the"),
    ("recovery idle", {**TRIM, "GPUSIM_FAIL": "cuMemAlloc_v2:2"}, "cache-held", "trimmed: ",
     "cudaMemPoolTrimTo"),
]


@pytest.mark.parametrize("words, env, never, says, never_advised", IN_VAIN,
                         ids=[row[2] for row in IN_VAIN])
def test_remedy_in_vain_is_told_and_not_advised(situation, words, env, never, says, never_advised):
    report = situation(words, env).reports[0]
    verdict = report.json["verdict"]
    assert (report.outcome, report.code == never) == ("failed", False)
    assert verdict["confidence"] != "proven"
    assert any(says in line for line in verdict["evidence"])
    assert not any(never_advised in line for line in verdict["advice"])


def test_pool_that_gave_what_waiting_did_not_is_what_held_it(situation):
    report = situation("recovery pending", {"GPUSIM_FAIL": "cuMemAlloc_v2:2:3"}).report
    assert [step["result"] for step in report.json["recovery"]] == ["no help", "helped"]
    assert (report.outcome, report.code) == ("recovered", "cache-held")
    assert any("cudaMemPoolTrimTo" in line for line in report.json["verdict"]["advice"])


def test_stream_that_did_not_finish_in_time_stays_the_reason(situation):
    report = situation("recovery pending", {"GPUOOMSHIM_RETRY_BUDGET": "100ms"}).report
    assert (report.outcome, report.code) == ("failed", "pending-free")
    assert "waited for (a stream did not finish in time): nothing came back." in report.text
    assert any("ynchronize the" in line for line in report.json["verdict"]["advice"])

"""What once went wrong, and must not again."""
import re
import shutil

import pytest

from books import books_agree
from hosts import MIB, PROGRAMS, SIM


def test_closed_stderr_does_not_end_the_program(same, program):
    run = same(program("regress_closed_stderr"))
    assert run.report.code == "request-too-large"


def test_physical_memory_had_at_the_second_attempt_ends_the_story(same, program):
    run = same(program("regress_physical_again"))
    assert run.report.outcome == "recovered-by-caller"


def test_less_memory_of_another_kind_is_no_answer_to_physical_memory(same, program):
    run = same(program("regress_physical_again"), "otherwise")
    assert run.report.outcome == "failed"  # half of it, and from another line


@pytest.mark.parametrize("microseconds", range(20000, 60000, 5700))
def test_exit_in_a_signal_handler_ends_the_program(same, microseconds):
    same(PROGRAMS / "regress_exit_in_handler.linked", str(microseconds),
         env={"GPUOOMSHIM_EXIT_REPORT": "1"}, timeout=20)


def test_errno_is_the_hosts(same, program):
    run = same(program("regress_errno"))
    assert "errno after cuInit 1234\n" in run.stdout


def test_failures_of_ended_threads_do_not_pile_up(same, program):
    same(program("regress_threads_come_and_go"))


def test_child_of_a_fork_in_a_lookup_looks_up(same):
    """The line about the unusable value is what holds the first lookup up."""
    run = same(PROGRAMS / "regress_fork_in_lookup.dlsym", env={"GPUOOMSHIM_STACK_DEPTH": "many"})
    assert run.told("held_up") == [1]
    assert "child ended with 0\n" in run.stdout


def test_driver_that_was_closed_and_opened_elsewhere_is_used(same):
    run = same(PROGRAMS / "regress_driver_reopened.dlsym")
    assert "found without a driver 0\n" in run.stdout


@pytest.mark.parametrize("second", ["namespace", "copy"])
def test_second_driver_of_a_process_answers_for_itself(same, tmp_path, second):
    if second == "copy":
        second = shutil.copy(SIM / "libcuda.so.1", tmp_path)
    run = same(PROGRAMS / "regress_two_drivers.dlsym", second)
    assert run.stdout == "outcome: second 0\noutcome: first 0\noutcome: second again 0\n"


def test_limit_is_told_by_an_nvml_that_was_opened_again(host):
    run = host(PROGRAMS / "regress_nvml_reopened.dlsym", env={"GPUOOMSHIM_LIMIT": "0:8GiB"})
    assert run.stdout == "outcome: 8792 and then 8792\n", run.stderr


def test_driver_that_was_closed_is_not_asked_at_exit(host):
    run = host(PROGRAMS / "regress_driver_closed.dlsym", env={"GPUOOMSHIM_EXIT_REPORT": "1"})
    assert (run.code, run.stdout) == (0, "outcome: closed 0\n"), run.stderr
    assert "GPUs (no CUDA driver is loaded)" in run.report.json["incomplete"]


def test_stream_that_never_ends_is_waited_for_once(same, program):
    same(program("regress_endless_stream"), env={"GPUOOMSHIM_RETRY_BUDGET": "2s"})


@pytest.mark.parametrize("words, steps", [
    ("tiny", [("flush", "helped")]),
    ("other", [("sync", "helped")]),
    ("enough", [("sync", "timed out"), ("trim", "no help"), ("flush", "helped")]),
    ("both", [("flush", "no help"), ("sync", "helped")]),
])
def test_stream_that_never_ends_leaves_time_for_what_helps(host, program, words, steps):
    run = host(program("regress_stuck_stream"), words,
               env={"GPUOOMSHIM_RETRY_BUDGET": "3s", "GPUOOMSHIM_FLUSH_BUDGET": "1s"})
    assert run.stdout == "outcome: asked 0\n", run.stderr
    recovery = [(step["step"], step["result"]) for step in run.report.json["recovery"]]
    assert recovery == steps
    (ms,) = run.told("took_ms")
    assert 1900 < ms < 2900 if words == "enough" else ms < 1500


def test_free_that_waits_for_endless_work_holds_nobody_else_up(host, program):
    """As on a real device: while it waits in the driver, no other call comes back."""
    run = host(program("regress_stuck_stream"), "tiny",
               env={"GPUSIM_FREE_WAITS": "1", "GPUOOMSHIM_RETRY_BUDGET": "3s",
                    "GPUOOMSHIM_FLUSH_BUDGET": "500ms"}, timeout=20)
    assert run.stdout == "outcome: asked 2\n", run.stderr
    assert [(step["step"], step["result"]) for step in run.report.json["recovery"]] == \
        [("flush", "timed out")]
    assert 500 <= run.told("took_ms")[0] < 1500


def test_waiting_for_another_threads_recovery_is_part_of_the_budget(same, program):
    run = same(program("regress_second_turn"), env={"GPUOOMSHIM_RETRY_BUDGET": "2s"})
    first, second = run.told("took_ms")
    assert first >= 1900
    assert 1500 < second < 3000


def test_rescued_failure_is_not_one_that_the_host_survived(host, program):
    run = host(program("regress_two_stories"))
    assert run.code == 0, run.stdout + run.stderr
    assert run.told("survived") == [0, 1]
    assert [report.outcome for report in run.reports] == ["recovered", "recovered-by-caller"]


def test_summary_and_screen_are_short_by_the_same_number(same, program):
    report = same(program("regress_physical_again")).report
    said = set(re.findall(r"[Ss]hort by +([0-9.]+ [A-Z]i?B)", report.text))
    assert len(said) == 1, said


def test_error_of_a_repeated_launch_is_not_the_hosts(same, program):
    run = same(program("regress_other_error"))
    assert run.told("ended") == [1]


def test_line_on_stderr_names_the_call_as_it_was_written(same, program):
    (line,) = same(program("scenario_4")).lines_of_shim
    assert "cuMemAllocAsync of 8.00 GiB was refused: exhausted-by-process" in line


def test_child_of_a_fork_while_a_thread_was_in_the_loader_ends(same, program):
    run = same(program("regress_fork_in_loader"))
    assert "allocation in the child 3\n" in run.stdout
    assert "child ended with 0\n" in run.stdout
    assert run.report.code == "forked"


def test_captured_stream_that_is_destroyed_does_not_end_recovery(host, program):
    run = host(program("regress_capture_ends"), "stream")
    assert run.stdout == "outcome: asked 0\n", run.stderr
    (step,) = run.report.steps("sync")
    assert step["result"] == "helped"


@pytest.mark.parametrize("words, step", [("gives", "flush"), ("refuses", "flush"),
                                         ("wait", "wait")])
def test_capture_that_begins_during_recovery_is_not_ended_by_it(same, program, tmp_path, words,
                                                                step):
    """By the callback's free, by the retry, by the retry after a wait."""
    env = {"GPUSIM_STATE": str(tmp_path / "state"), "GPUOOMSHIM_WAIT": "10s"}
    run = same(program("regress_capture_meanwhile"), words, env=env)
    assert run.stdout == "outcome: asked 2\noutcome: end of capture 0\n", run.stderr
    assert run.told("freed") == ([0] if words == "gives" else [])
    (line,) = run.report.steps(step)
    assert line["result"] == "stopped"
    assert "a capture began meanwhile" in line["reason"]


@pytest.mark.parametrize("call_us", [3000, 4000, 5000, 7000])
def test_capture_that_begins_during_the_retry_is_not_ended_by_it(host, program, call_us):
    """With slow calls, half of the time one is about to begin."""
    run = host(program("regress_capture_meanwhile"), "many",
               env={"GPUSIM_CALL_TIME": str(call_us)})
    assert run.code == 0, run.stderr
    assert run.stdout.endswith("outcome: end of capture 0\n"), run.stderr
    assert run.stdout.count("outcome") == 2


def test_capture_of_a_stream_with_pending_frees_is_not_ended_by_recovery(host, program):
    run = host(program("regress_capture_after_free"),
               env={"GPUSIM_CALL_TIME": "500", "GPUOOMSHIM_STACK": "off"})
    assert run.stdout == "outcome: end of capture 0\n", run.stderr


def test_default_stream_of_one_thread_is_captured_and_that_of_another_is_not(same, program):
    run = same(program("regress_capture_ends"), "thread")
    assert run.told("live_bytes") == [8 * MIB]
    assert run.told("live_count") == [1]


def test_thread_that_ends_inside_a_failing_call_leaves_recovery_to_others(same, program):
    run = same(program("regress_thread_ends"), env={"GPUOOMSHIM_RETRY_BUDGET": "40s",
                                                    "GPUOOMSHIM_FLUSH_BUDGET": "40s"})
    assert run.told("waited_ms")[0] < 20000
    (step,) = run.reports[-1].steps("flush")
    assert step["result"] == "no help"  # asked again, in its own turn


def test_failure_on_a_small_stack_is_left_alone_and_counted(same, program):
    run = same(program("regress_small_stack"))
    assert run.code == 0
    assert "its thread's stack is too small" in run.stderr
    assert run.report.outcome == "failed"
    assert any("reports not written" in line for line in run.report.json["incomplete"])


def test_coroutine_of_the_first_thread_may_have_a_small_stack(same, program):
    run = same(program("regress_small_stack"), "first")
    assert "its thread's stack is too small" in run.stderr
    assert run.reports == []


def test_answer_on_a_small_stack_is_noted_in_the_report_at_the_end(same, program):
    run = same(program("regress_answer_on_small_stack"))
    assert run.code == 0
    assert run.report.outcome == "recovered-by-caller"


def test_many_lines_that_are_refused_in_turn_are_told_once_each(same, program):
    run = same(program("regress_many_lines"))
    assert run.stderr.count("was refused") == len(run.reports) == 10
    assert not any("reports not written" in line
                   for report in run.reports for line in report.json["incomplete"])


def test_context_that_comes_after_many_streams_ends_with_its_memory(same, program):
    books_agree(same(program("regress_many_streams")))


@pytest.mark.parametrize("how, symbol", [
    ("module", "cuModuleLoadDataEx"), ("library", "cuLibraryLoadData"),
    ("file", "cuLibraryLoadFromFile")])
def test_load_that_is_repeated_is_the_same_call(host, program, how, symbol):
    run = host(program("regress_load_options"), how, env={"GPUSIM_FAIL": f"{symbol}:2:1"})
    assert run.report.outcome == "recovered"
    assert "outcome: load 0\noutcome: log of 7: loaded\n" in run.stdout


def test_load_that_is_repeated_writes_to_no_constant(host, program):
    run = host(program("regress_load_options"), "constant",
               env={"GPUSIM_FAIL": "cuModuleLoadDataEx:2:1"})
    assert run.report.outcome == "recovered"
    assert "outcome: load 0\n" in run.stdout

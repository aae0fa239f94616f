"""Callers that are seen to retry are left alone the next time, and lost failures are told."""
import pytest

from hosts import MIB, PROGRAMS, ROOT

PYTHON_RETRIES = ROOT / "tests" / "programs" / "retries.py"


def outcomes(run):
    return [line for line in run.stdout.splitlines() if line.startswith("outcome: ")]


def test_who_frees_its_cache_and_asks_again_is_left_alone_the_next_time(same, program):
    run = same(program("retries"), "same")
    assert len(outcomes(run)) == 3
    report = run.report  # of the first time, when nobody knew
    assert report.outcome == "recovered-by-caller"
    assert not report.json["request"]["caller_retries"]
    assert len(run.lines_of_shim) == 1


@pytest.mark.parametrize("situation", ["same", "shrink"])
def test_what_the_caller_survives_is_reported_if_asked_for(same, program, situation):
    run = same(program("retries"), situation, env={"GPUOOMSHIM_REPORT_ON": "all"})
    assert [report.outcome for report in run.reports] == ["recovered-by-caller"] * 3
    assert [report.json["request"]["caller_retries"] for report in run.reports] == \
        [False, True, True]
    assert len({report.json["request"]["bytes"] for report in run.reports}) == 1  # what it wanted
    assert len(run.lines_of_shim) == 1  # of the first time, when nobody knew


def test_who_fails_for_good_after_all_leaves_one_report_of_it(same, program):
    run = same(program("retries"), "gives_up", env={"GPUOOMSHIM_REPORT_ON": "all"})
    assert (run.last.outcome, run.last.json["request"]["bytes"]) == ("failed", 6144 * MIB)
    assert [report.outcome for report in run.reports].count("failed") == 1


def test_who_asks_for_less_and_less_is_left_alone_the_next_time(same, program):
    run = same(program("retries"), "shrink")
    assert run.report.outcome == "recovered-by-caller"
    assert len(run.lines_of_shim) == 1


def test_who_then_fails_for_good_is_told(same, program):
    run = same(program("retries"), "gives_up")
    assert run.last.outcome == "failed" and run.drafts == []
    assert run.last.json["request"]["bytes"] == 6144 * MIB


def test_threads_that_failed_for_good_at_one_line_are_one_report_of_the_last(same, program):
    run = same(program("retries"), "threads")
    (failed,) = [report for report in run.reports if report.outcome == "failed"]
    assert run.last.path == failed.path


def test_without_native_stacks_each_story_is_its_own(same, program):
    run = same(program("retries"), "same", env={"GPUOOMSHIM_STACK": "python"})
    assert [report.outcome for report in run.reports] == ["recovered-by-caller"] * 3


def test_who_goes_on_and_fails_again_is_helped_and_told_again(host):
    bare = host(PROGRAMS / "server.linked", preload=False)
    assert outcomes(bare) == ["outcome: while the cache is in use 2", "outcome: at once 2",
                              "outcome: later 2"]
    run = host(PROGRAMS / "server.linked")
    assert outcomes(run) == ["outcome: while the cache is in use 2", "outcome: at once 2",
                             "outcome: later 0"]
    assert run.told("calls") == [1, 1, 2]  # the one at once is the same story
    assert [report.outcome for report in run.reports] == ["failed", "recovered"]


def test_real_failure_takes_the_place_of_survived_ones_where_there_is_no_more_room(same, program):
    run = same(program("retries"), "gives_up", env={"GPUOOMSHIM_REPORT_MAX": "1"})
    assert run.report.outcome == "failed"
    assert run.report.json["request"]["bytes"] == 6144 * MIB


def test_place_in_python_is_left_alone_the_next_time(same, python):
    run = same(python, PYTHON_RETRIES)
    assert outcomes(run) == ["outcome: survived 0"] * 3
    assert run.report.outcome == "recovered-by-caller"  # of the first time, when nobody knew
    assert len(run.lines_of_shim) == 1


def test_other_lines_of_python_are_another_place(same, python):
    run = same(python, PYTHON_RETRIES, "elsewhere")
    assert outcomes(run)[-1] == "outcome: elsewhere 2"
    first, last = run.reports
    assert (first.outcome, last.outcome) == ("recovered-by-caller", "failed")
    assert not last.json["request"]["caller_retries"]
    assert last.json["told_late"] is None


# torch's expandable segments are made piece by piece, and given up piece by piece.

def test_segment_that_grows_after_a_flush_is_left_alone(same, program):
    run = same(program("segments"), PROGRAMS / "libc10_segments.so", "survives")
    assert outcomes(run) == ["outcome: grown 0"] * 3
    assert run.files == [] and run.lines_of_shim == []
    assert run.told("survived") == [3]


def test_segment_that_cannot_grow_is_told_at_that_moment(same, program):
    run = same(program("segments"), PROGRAMS / "libc10_segments.so", "fails")
    assert outcomes(run) == ["outcome: too large 2", "outcome: with less in use 0"]
    report = run.report
    # It went on, and what it was refused it got later.
    assert (report.code, report.outcome) == ("exhausted-by-process", "recovered-by-caller")
    assert report.json["request"]["attempts"] == 2
    assert report.ledger()["live_device"] > report.device()["total_bytes"] // 2
    assert "3.38 GiB of physical memory that nothing maps yet" in report.text


# --- a framework without a cache of its own asks once --------------------------------------------

@pytest.mark.parametrize("library, how", [("libc10_once.so", "async"), ("libcupy_once.so", "sync")])
def test_framework_that_asks_once_is_told_with_what_was_held_then(same, program, library, how):
    run = same(program("asks_once"), PROGRAMS / library, how)
    assert outcomes(run) == ["outcome: asked 2"]
    assert (run.report.code, run.report.outcome) == ("exhausted-by-process", "failed")
    assert run.report.ledger()["live_device"] > run.report.device()["total_bytes"] // 2


def test_torch_on_the_drivers_pool_is_helped_at_its_first_failure(same, program):
    report = same(program("asks_once"), PROGRAMS / "libc10_once.so", "async").report
    assert not report.json["request"]["caller_retries"]
    assert "at exit" not in report.text

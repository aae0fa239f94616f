"""Callers that are seen to retry are left alone the next time, and lost failures are told."""
import pytest

from hosts import MIB


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
    assert [report.outcome for report in run.reports] == \
        ["recovered-by-caller", "recovered-by-caller", "failed"]


def test_who_asks_for_less_and_less_is_left_alone_the_next_time(same, program):
    run = same(program("retries"), "shrink")
    assert run.report.outcome == "recovered-by-caller"
    assert len(run.lines_of_shim) == 1


def test_who_then_fails_for_good_is_told_when_the_process_ends(same, program):
    run = same(program("retries"), "gives_up")
    first, last = run.reports
    assert first.outcome == "recovered-by-caller"
    assert last.outcome == "failed"
    assert last.json["request"]["bytes"] == 6144 * MIB
    assert last.json["request"]["caller_retries"]


def test_each_thread_that_failed_for_good_is_told(same, program):
    run = same(program("retries"), "threads")
    failed = [report for report in run.reports if report.outcome == "failed"]
    assert len(failed) == 4
    assert len({report.json["request"]["tid"] for report in failed}) == 4


def test_without_native_stacks_nothing_is_learned(same, program):
    run = same(program("retries"), "same", env={"GPUOOMSHIM_STACK": "python"})
    assert [report.outcome for report in run.reports] == ["recovered-by-caller"] * 3

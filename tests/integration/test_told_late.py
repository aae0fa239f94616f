"""A failure that was put off and that nothing answered: the report of it is of its moment."""
import re
import shutil

import pytest

from hosts import BUILD, MIB


@pytest.fixture
def xla(program, tmp_path):
    """The host under a name that a library of XLA's has, which is known to ask again and again."""
    path = tmp_path / "xla_extension_host"
    shutil.copy(program("gives_up"), path)
    return path


def test_report_shows_the_moment_of_the_failure(same, xla):
    run = same(xla)
    report = run.report
    assert run.stdout.count("extend") == 7
    assert (report.outcome, report.code) == ("failed", "exhausted-by-process")
    (weights,) = report.json["sites"]
    assert weights["live_bytes"] == 12288 * MIB
    assert report.ledger()["live_device"] == 12288 * MIB
    assert report.ledger()["free"] == (15872 - 12288) * MIB
    assert report.json["verdict"]["short_bytes"] == \
        report.json["request"]["bytes"] - report.ledger()["free"]


def test_report_says_that_it_was_written_at_exit_and_what_is_of_the_exit(same, xla):
    run = same(xla)
    report = run.report
    told = report.json["told_late"]
    assert told["memory_of"] == "failure"
    assert told["wall_ns"] >= report.json["request"]["wall_ns"]
    assert re.search(r"^written +later, \d\d:\d\d:\d\d, of a refusal at \d\d:\d\d:\d\d:",
                     report.text, re.M)
    unseen = " ".join(report.json["incomplete"])
    assert "NVML was not asked" in unseen
    assert "as they were when the process ended" in unseen
    assert report.json["versions"] and report.json["host"]["memory_total_bytes"] > 0
    assert report.json["process"]["command"]
    (line,) = run.lines_of_shim
    assert re.search(r"was refused at \d\d:\d\d:\d\d: exhausted-by-process", line)


def test_shown_again_it_is_the_same(host, xla):
    report = host(xla).report
    shown = host(BUILD / "gpuoomshim", "show", report.path, preload=False, sim=False)
    assert shown.code == 0, shown.stderr
    (line,) = [line for line in report.text.splitlines() if line.startswith("written ")]
    assert line in shown.stdout


def test_many_allocations_are_looked_at_and_nothing_is_proven_where_that_was_too_seldom(same, xla):
    report = same(xla, "20000").report
    memory_of = report.json["told_late"]["memory_of"]
    assert memory_of in ("failure", "earlier")
    if memory_of == "earlier":
        assert report.json["verdict"]["confidence"] != "proven"
        assert "memory as of an earlier one" in report.text


@pytest.mark.parametrize("how", ["gives_up", "threads"])
def test_learned_caller_that_fails_for_good_is_shown_as_it_failed(same, program, how):
    last = same(program("retries"), how).last
    assert (last.outcome, last.code) == ("failed", "exhausted-by-process")
    assert sum(site["live_bytes"] for site in last.json["sites"]) == 12288 * MIB


def test_who_is_answered_leaves_nothing(same, program):
    assert same(program("retries"), "shrink").report.json["told_late"] is None

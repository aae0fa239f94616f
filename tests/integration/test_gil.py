"""The GIL, the threads and the collector of a program in Python stay its own."""
import pytest

import pythons
from hosts import PROGRAMS, ROOT
from test_flush import outcomes, the_step

HOST = ROOT / "tests" / "programs" / "gil_host.py"
each_version = pytest.mark.parametrize(
    "version", pythons.of_versions(["3.8", "3.11", "3.12", "3.13", "3.14"]))


@pytest.fixture
def gil(host, python):
    def run(*words, version=None, env=None, **options):
        return host(version or python, HOST, *words, env={"STUBS": str(PROGRAMS), **(env or {})},
                    **options)

    return run


def not_asked(report):
    return [line for line in report.json["incomplete"] if "holds the GIL" in line]


@each_version
def test_section_that_the_gil_guards_is_never_entered_by_two(gil, version):
    run = gil("section", version=version, env={"GPUOOMSHIM_RETRY": "off"})
    assert outcomes(run) == ["ask 2", "overlaps 0"], run.stderr
    assert run.told("asked") == [0]
    assert run.report.json["frameworks"] == [] and len(not_asked(run.report)) == 1


@pytest.fixture
def telling(tmp_path):
    """The stand-ins, with a torch among them that tells of its blocks."""
    for path in [*PROGRAMS.glob("*.so*"), *(PROGRAMS / "torch_2").glob("*.so")]:
        link = tmp_path / path.name
        link.unlink(missing_ok=True)
        link.symlink_to(path)
    return {"STUBS": str(tmp_path)}


@each_version
def test_section_stays_guarded_where_torch_has_told_that_all_it_holds_is_in_use(gil, telling, version):
    """A flush would give nothing, so that the GIL is not let go of for one."""
    run = gil("section", version=version, env=telling)
    assert outcomes(run) == ["ask 2", "overlaps 0"], run.stderr
    assert the_step(run.report)["result"] == "skipped"
    assert run.report.code == "exhausted-by-process"
    assert "torch has told of 15.00 GiB in use" in run.report.text
    assert "expandable_segments" not in run.report.text and "opaque" not in run.report.text


def test_torch_that_has_told_of_less_than_it_holds_is_flushed(gil, telling):
    run = gil("flush", "main", "idle", env=telling)
    assert outcomes(run) == ["ask 0"] and run.told("emptied") == [1]
    assert run.report.outcome == "recovered"


def test_thread_with_the_gil_does_not_let_go_of_it_for_the_turn(gil):
    run = gil("section_beside_a_flush", "idle")
    assert outcomes(run) == ["ask 2", "the other thread asks 0", "overlaps 0"]
    (failed,) = [report for report in run.reports if report.outcome == "failed"]
    (step,) = failed.json["recovery"]
    assert step["result"] == "skipped" and "may take the GIL" in step["reason"]


@each_version
def test_daemon_thread_is_not_ended_in_the_frames_of_the_host(gil, version):
    bare = gil("ends", "idle", version=version, preload=False)
    run = gil("ends", "idle", version=version, env={"GPUOOMSHIM_FLUSH_BUDGET": "100ms"})
    assert (run.code, outcomes(run)) == (bare.code, outcomes(bare)) == (0, ["ask 2"]), run.stderr
    assert "may end without waiting" in the_step(run.report)["reason"]


@each_version
@pytest.mark.parametrize("thread, result, on_failing_thread",
                         [("main", 0, 0), ("other", 0, 1), ("daemon", 2, 0)])
def test_flush_runs_where_the_gil_may_go_or_under_the_one_that_is_held(
        gil, version, thread, result, on_failing_thread):
    run = gil("flush", thread, "idle", version=version)
    assert outcomes(run) == [f"ask {result}"], run.stderr
    assert run.told("emptied") == [1 - result // 2]
    assert run.told("on_failing_thread") == [on_failing_thread]
    assert run.report.outcome == ("failed" if result else "recovered")
    assert the_step(run.report)["result"] == ("skipped" if result else "helped")


def test_what_is_freed_on_the_failing_thread_is_off_the_books(gil):
    run = gil("flush", "other", "idle", env={"GPUOOMSHIM_EXIT_REPORT": "1"})
    at_exit = run.reports[-1]
    assert at_exit.json["kind"] == "exit"
    assert sum(at_exit.live_bytes_by_kind().values()) == (3 + 1) << 30


@each_version
def test_exception_that_the_host_has_in_hand_outlives_a_flush(gil, version):
    run = gil("flush_while_raising", "idle", version=version)
    assert outcomes(run) == ["exception in hand", "ask 0"], run.stderr
    assert run.told("emptied") == [1]
    assert run.reports[0].outcome == "recovered"


def test_thread_that_would_keep_the_gil_does_not_wait_for_other_processes(gil, tmp_path):
    run = gil("wait", env={"GPUOOMSHIM_WAIT": "5s", "GPUSIM_STATE": str(tmp_path / "state")})
    assert outcomes(run) == ["ask 2"], run.stderr
    (step,) = run.report.steps("wait")
    assert step["result"] == "skipped" and "holds the GIL" in step["reason"]


@each_version
@pytest.mark.parametrize("situation", ["finalizers", "finalizers_that_are_due"])
def test_finalizers_of_the_host_run_on_its_own_threads(gil, version, situation):
    run = gil(situation, "idle", version=version)
    assert outcomes(run) == ["ask 0", "finalizers on the main thread only True",
                             "thresholds True", "collector True"], run.stderr
    assert run.told("asked") == [1]


@each_version
def test_what_the_host_tells_the_collector_meanwhile_stays(gil, version):
    run = gil("settings_of_the_host", "idle", version=version)
    assert outcomes(run) == ["ask 0", "thresholds (123, 4)", "collector False"], run.stderr


@each_version
def test_collector_of_a_child_that_is_forked_meanwhile_goes_on(gil, version):
    run = gil("fork", "idle", version=version)
    assert outcomes(run) == ["child 7", "thresholds True"], run.stderr

"""Programs that a Python exception about memory ends, where no call of CUDA has failed."""
import json
import re
import subprocess

import pytest
import pythons

from hosts import BUILD, PROGRAMS, ROOT

HOST = ROOT / "tests" / "programs" / "python_end.py"
GIB = 1 << 30
each_python = pytest.mark.parametrize("version", pythons.of_versions(pythons.KNOWN))


@pytest.fixture
def ends(host, python, tmp_path):
    """ends(SITUATION…): run without and with the library; both say and end the same."""
    packages = tmp_path / "site-packages"
    packages.symlink_to(ROOT / "tests" / "programs" / "framework_modules")

    def run(*words, version=None, env=None):
        env = dict({"PYTHONPATH": str(packages)}, **(env or {}))
        bare, ours = (host(version or python, HOST, *words, env=env, preload=preload)
                      for preload in (False, True))
        assert bare.files == []
        assert (ours.code, ours.stdout) == (bare.code, bare.stdout), ours.stderr
        said = [line for line in ours.stderr.splitlines() if not line.startswith("gpuoomshim: ")]
        assert without_addresses(said) == without_addresses(bare.stderr.splitlines())
        return ours

    return run


def without_addresses(said):
    return [re.sub("0x[0-9a-f]+", "0x", line) for line in said]


def lines(report):
    return [(line["part"], line["bytes"] / GIB, line["count"], line["label"])
            for line in report.json["framework_lines"]]


@each_python
def test_full_arena_that_ends_the_program_is_told_with_the_lines_that_fill_it(ends, version):
    run = ends("uncaught", version=version)
    assert run.code == 1
    report = run.report
    assert (report.code, report.outcome) == ("exhausted-by-process", "failed")
    assert report.json["verdict"]["confidence"] == "proven"
    request = report.json["request"]
    assert (request["api"], request["entry"], request["result"]) == ("jax", None, None)
    assert (request["bytes"], request["device"]) == (3 * GIB, 0)
    assert report.json["verdict"]["short_bytes"] == GIB
    assert lines(report) == [("arrays", 8.0, 8, "train.py:12 load"),
                             ("arrays", 1.0, 1, "model.py:7 step"),
                             ("programs", 0.5, 1, "compiled programs")]
    assert "train.py:12 load" in report.text.split("VERDICT")[0]
    assert "asked by   jax: python_end.py:" in report.text
    assert "step <- python_end.py:" in report.text
    (line,) = run.lines_of_shim
    assert "jax refused 3.00 GiB at python_end.py:" in line


@each_python
@pytest.mark.parametrize("situation", ["in_thread", "in_raw_thread"])
def test_refusal_that_ends_a_thread_is_told_once(ends, situation, version):
    report = ends(situation, version=version).report
    assert report.json["request"]["api"] == "jax"
    assert "python_end.py:" in report.text.split("VERDICT")[0]


@pytest.mark.parametrize("situation", ["from_thread", "caused", "meanwhile", "boundary", "audited",
                                       "imported_late"])
def test_refusal_is_told_once_however_it_reaches_the_end(ends, situation):
    report = ends(situation).report
    assert report.json["request"]["api"] == "jax"
    assert lines(report)[0][3] == "train.py:12 load"


@pytest.mark.parametrize("situation", ["system_exit", "interrupted", "other_error",
                                       "other_resource", "on_processors"])
def test_end_that_is_no_refusal_of_device_memory_leaves_no_report(ends, situation):
    run = ends(situation)
    assert run.files == [] and run.lines_of_shim == []


@each_python
def test_server_that_handles_its_refusals_writes_one_report_and_none_is_kept(ends, version):
    run = ends("handled", version=version)
    assert run.code == 0 and run.stdout.count("outcome: let go of True") == 5
    assert run.report.json["request"]["bytes"] == 3 * GIB


def test_refusal_that_ends_the_program_is_told_after_others_were_handled(ends):
    run = ends("handled_then_fatal")
    assert [report.json["request"]["bytes"] // GIB for report in run.reports] == [5, 3]


def test_what_lies_outside_of_the_arena_is_advised_only_where_it_is_much(ends):
    report = ends("uncaught").report
    assert any("XLA_PYTHON_CLIENT_MEM_FRACTION" in line
               for line in report.json["verdict"]["advice"])
    full = ends("uncaught", env={"GPUSIM_MEMORY": "13000"}).report
    assert not any("MEM_FRACTION" in line for line in full.json["verdict"]["advice"])


def test_arena_in_pieces_is_told_as_such(ends):
    report = ends("in_pieces").report
    assert (report.code, report.json["verdict"]["confidence"]) == ("fragmented", "likely")


def test_child_of_a_fork_ends_as_without_the_library(ends):
    run = ends("forked")
    assert run.code == 0 and run.files == []


def test_switched_off_library_adds_no_hook(ends):
    assert ends("uncaught", env={"GPUOOMSHIM_DISABLE": "1"}).files == []


@each_python
def test_limit_of_cupys_pool_is_told_with_its_size(ends, version):
    report = ends("cupy_limit", version=version).report
    assert (report.code, report.json["verdict"]["confidence"]) == ("policy-limit", "proven")
    assert "cupy's own limit of 2.00 GiB" in report.json["verdict"]["summary"]
    assert report.json["request"]["bytes"] == GIB
    (cupy,) = report.json["frameworks"]
    assert cupy["limit_bytes"] == 2 * GIB


def test_exception_after_a_driver_call_that_failed_is_left_to_that_call(ends):
    assert ends("cupy_driver").files == []


def test_driver_call_that_was_put_off_becomes_the_report_with_jaxs_lines(ends):
    run = ends("arena_cannot_grow", env={"STUBS": str(PROGRAMS)})
    assert "outcome: -1" in run.stdout
    ours = [report for report in run.reports if report.json["request"]["api"] == "jax"]
    assert len(ours) == 1, run.stderr
    request = ours[0].json["request"]
    assert (request["entry"], request["result"]) == ("cuMemAlloc_v2", 2)
    assert request["bytes"] == 3 * GIB
    assert ours[0].code == "exhausted-by-process"
    assert "train.py:12 load holds 8.00 GiB in 8 arrays." in ours[0].json["verdict"]["evidence"]


def test_report_is_shown_as_it_was_written(ends, tmp_path):
    report = ends("uncaught").report
    shown = subprocess.run([BUILD / "gpuoomshim", "show", report.path], stdout=subprocess.PIPE,
                           text=True, check=True).stdout
    assert report.text.split("VERDICT")[0].strip() in shown
    assert "train.py:12 load" in shown and json.loads(report.path.read_text())["framework_lines"]

"""What torch says of itself when it gives up becomes the report, before its caller knows."""
import pytest

from hosts import MIB, PROGRAMS, ROOT

HOST = ROOT / "tests" / "programs" / "torch_refuses.py"
TORCHES = ("torch_1", "torch_2")
each_abi = pytest.mark.parametrize("torch", TORCHES)


@pytest.fixture
def refuses(same, python):
    def run(situation, torch="torch_2", **env):
        return same(python, HOST, situation, env={"STUBS": str(PROGRAMS / torch), **env})

    return run


def line_of(function):
    """Its last line that takes memory."""
    lines = HOST.read_text().splitlines()
    start = lines.index(f"def {function}:") + 1
    end = next((at for at in range(start, len(lines)) if lines[at].startswith("def ")), len(lines))
    return max(at + 1 for at in range(start, end) if "_take(" in lines[at])


@each_abi
def test_report_is_on_disk_when_the_caller_has_its_error(refuses, torch):
    run = refuses("once", torch)
    assert run.told("there") == [1]
    report = run.report
    request = report.json["request"]
    assert (request["api"], request["word"], request["trials"]) == ("torch", True, 0)
    assert (request["bytes"], request["driver_bytes"]) == (8192 * MIB, 8192 * MIB)
    assert (request["result"], request["attempts"]) == (2, 2)
    assert report.code == "exhausted-by-process"
    (torch_says,) = report.json["frameworks"]
    assert torch_says["used_bytes"] == 12288 * MIB and not torch_says["late"]
    (line,) = run.lines_of_shim
    where = f"torch_refuses.py:{line_of('take(mib)')} take"
    assert line.startswith(f"gpuoomshim: torch refused 8.00 GiB at {where}: exhausted")


@each_abi
def test_tensor_is_named_beside_the_handle_that_the_driver_refused(refuses, torch):
    request = refuses("expandable", torch).report.json["request"]
    assert (request["bytes"], request["driver_bytes"]) == (8192 * MIB, 20 * MIB)
    assert request["entry"] == "cuMemCreate"


@each_abi
def test_limit_of_torch_is_told_though_no_call_fails(refuses, torch):
    run = refuses("fraction", torch)
    assert run.told("there") == [1]
    report = run.report
    request = report.json["request"]
    assert (request["entry"], request["result"], request["driver_bytes"]) == (None, None, None)
    assert (report.code, report.json["verdict"]["confidence"]) == ("policy-limit", "proven")
    assert "set_per_process_memory_fraction" in report.json["verdict"]["summary"]
    assert "3.00 GiB reserved" in report.text and "no call of CUDA failed" in report.text


def test_refusal_in_a_capture_is_told(refuses):
    report = refuses("capturing").report
    assert report.json["request"]["attempts"] == 1
    assert report.code == "exhausted-by-process"


def test_torch_without_its_cache_says_nothing_and_is_told_by_its_calls(refuses):
    report = refuses("uncached").report
    assert not report.json["request"]["word"]
    assert report.json["request"]["api"] == "cudaMalloc"


def test_thousand_refusals_at_one_line_are_one_report_of_the_last(refuses):
    run = refuses("server")
    assert len(run.lines_of_shim) == 1
    last = run.last.json["request"]  # in a draft: nothing tells that the program ends
    assert (last["bytes"], last["trials"]) == ((8192 + 999) * MIB, 999)
    assert len(run.reports) == 1


def test_two_lines_in_turn_are_two_reports_and_the_last_refusal_is_the_newest(refuses):
    run = refuses("lines_in_turn")
    assert len(run.lines_of_shim) == 2
    assert len(run.reports) == 2
    assert run.last.json["request"]["bytes"] == (7168 + 49) * MIB


def test_caller_that_halves_until_it_fits_has_not_failed(refuses):
    run = refuses("halving")
    assert run.report.outcome == "recovered-by-caller"
    assert len(run.lines_of_shim) == 1 and "failed" not in run.stderr
    assert "failed" not in run.report.text.split("VERDICT")[0]


def test_trials_that_were_survived_are_a_number_in_the_report_of_the_last(refuses):
    run = refuses("trials_then_fatal")
    assert len(run.lines_of_shim) == 1
    last = run.last
    assert last.json["request"]["bytes"] == 17408 * MIB
    assert last.json["request"]["trials"] == 5
    assert last.outcome == "failed"
    assert len(run.reports) == 1


def test_threads_that_are_refused_at_one_line_are_one_report(refuses):
    run = refuses("threads")
    assert len(run.lines_of_shim) == 1
    assert len(run.reports) == 1


@each_abi
def test_what_is_told_of_later_is_brought_into_the_report_at_the_end(refuses, torch):
    run = refuses("halving", torch, GPUOOMSHIM_REPORT_ON="all")
    assert run.drafts == []
    assert {report.outcome for report in run.reports} == {"recovered-by-caller"}

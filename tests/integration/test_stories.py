"""Whose story a failure belongs to: its requester's and its line's, whatever the sizes."""
import os

import pytest

from hosts import MIB, PROGRAMS, ROOT, shown

TWO_LIBRARIES = ROOT / "tests" / "programs" / "one_line_two_libraries.py"
ASKS = PROGRAMS / "asks.linked"
FULL = "hold=12288"  # of 15,872
SLOW = {"GPUSIM_REFUSE_TIME": "5000"}


@pytest.fixture
def asks(same, program):
    """The host that does what its words say; its answers are the driver's."""
    return lambda *words, **options: same(program("asks"), *words, **options)


def outcomes(run):
    prefix = "outcome: "
    return [line[len(prefix):] for line in run.stdout.splitlines() if line.startswith(prefix)]


def sizes(left):
    return [one.json["request"]["bytes"] // MIB for one in left]


def results(left):
    return [one.outcome for one in left]


def assert_alike(left):
    """Text and JSON say the same."""
    for one in left:
        assert one.text is not None and shown(one.path) == one.text, one.path


def assert_not_called_failed(run):
    """The word is for what was not survived."""
    for text in (run.stderr, *(one.text.split("VERDICT")[0] for one in run.left)):
        assert "failed" not in text, text


# --- another line -----------------------------------------------------------------------------

@pytest.mark.parametrize("words, mib", [
    ("a=10240 b=4096", [10240, 4096]),
    ("a=4096 b=10240", [4096, 10240]),
    ("a=6144 b=6144", [6144, 6144]),
    ("c=10240 d=4096", [10240, 4096]),  # through one function
])
def test_failure_of_another_line_is_another_story_whatever_its_size(asks, words, mib):
    run = asks(FULL, *words.split())
    assert (sizes(run.reports), results(run.reports)) == (mib, ["failed"] * 2)
    assert run.drafts == []
    assert len(run.lines_of_shim) == 2
    assert_alike(run.reports)


def test_failure_of_another_line_is_helped_though_one_failed_before_with_more(host, program):
    words = (program("asks"), "hold=10240", "a=10240", "pend=2048", "b=4096")
    assert outcomes(host(*words, preload=False)) == ["a=10240 2", "b=4096 2"]
    run = host(*words)
    assert outcomes(run) == ["a=10240 2", "b=4096 0"]
    assert results(run.left) == ["failed", "recovered"]


def test_failures_of_one_line_are_one_report_of_the_last(asks):
    run = asks(FULL, "a=10240", "a=4096", "a=6144")
    assert sizes(run.left) == [6144]
    assert run.last.outcome == "failed"
    assert run.last.json["request"]["trials"] == 2
    assert len(run.lines_of_shim) == 1
    assert_alike(run.left)


def test_line_that_fails_again_is_newer_than_what_was_told_meanwhile(asks):
    run = asks(FULL, "a=10240", "b=8192", "a=6144")
    assert sizes(run.reports) == [8192, 6144]
    assert run.drafts == [] and sizes(run.left) == [8192, 6144]
    assert len(run.lines_of_shim) == 2
    assert_alike(run.reports)


def test_what_was_refused_and_is_had_at_another_line_is_survived(asks):
    run = asks("hold=8192", "d=4096", "a=6144", "give", "b=6144")
    assert outcomes(run) == ["d=4096 0", "a=6144 2", "b=6144 0"]
    assert (run.report.outcome, run.drafts) == ("recovered-by-caller", [])


def test_less_than_was_refused_had_at_another_line_is_no_answer(asks):
    run = asks("hold=8192", "a=10240", "b=7168")
    assert outcomes(run) == ["a=10240 2", "b=7168 0"]
    assert (sizes(run.reports), results(run.reports)) == ([10240], ["failed"])


def test_something_small_at_the_same_line_is_no_answer(asks):
    run = asks(FULL, "a=10240", "a=2048")
    assert (sizes(run.reports), results(run.reports)) == ([10240], ["failed"])


# --- another library ----------------------------------------------------------------------------

def test_another_library_at_the_same_line_is_another_story(same, python):
    run = same(python, TWO_LIBRARIES, env={"STUBS": str(PROGRAMS)})
    assert outcomes(run) == ["stub_torch_take 2", "stub_nccl_ask 2"]
    assert [one.json["request"]["requester"] for one in run.left] == \
        ["libc10_cuda.so", "libnccl.so.2"]
    assert (sizes(run.left), results(run.left)) == ([4096, 1024], ["failed"] * 2)
    assert len(run.lines_of_shim) == 2


def test_another_library_is_helped_though_torch_failed_before_with_more(host, python):
    words = (python, TWO_LIBRARIES, "cached")
    env = {"STUBS": str(PROGRAMS)}
    assert outcomes(host(*words, env=env, preload=False)) == \
        ["stub_torch_take 2", "stub_nccl_ask 2"]
    run = host(*words, env=env)
    assert outcomes(run) == ["stub_torch_take 2", "stub_nccl_ask 0"]
    assert results(run.left) == ["failed", "recovered"]
    assert run.last.code == "cache-held"


# --- trials ---------------------------------------------------------------------------------------

def test_halving_that_fits_at_last_is_never_called_a_failure(asks):
    run = asks(FULL, *"a=12288 a=8192 a=4096 a=2048 give".split())
    assert outcomes(run)[-1] == "a=2048 0"
    assert run.drafts == [] and len(run.left) <= 1
    assert all(one.outcome == "recovered-by-caller" for one in run.left)
    assert len(run.lines_of_shim) <= 1
    assert_not_called_failed(run)
    assert_alike(run.left)


def test_halving_again_and_again_leaves_nothing_more(asks):
    once = "a=12288 a=8192 a=4096 a=2048 give".split()
    run = asks(FULL, *once * 20)
    assert outcomes(run).count("a=2048 0") == 20
    assert run.drafts == [] and len(run.left) <= 1
    assert all(one.outcome == "recovered-by-caller" for one in run.left)
    assert len(run.lines_of_shim) <= 1
    assert_not_called_failed(run)


@pytest.mark.parametrize("end", ["return", "_exit"])
def test_halving_that_never_fits_is_one_report_of_the_last_with_the_number_of_trials(
        ends_alike, program, end):
    mibs = [8192 >> shift for shift in range(10)]
    run = ends_alike(program("asks"), "hold=15868", *(f"a={mib}" for mib in mibs), end)
    last = run.last
    assert last.outcome == "failed"
    assert last.json["request"]["bytes"] == mibs[-1] * MIB
    assert last.json["request"]["trials"] == len(mibs) - 1
    assert len(run.lines_of_shim) == 1
    if end == "return":
        assert len(run.reports) == 1 and run.drafts == []
        assert_alike(run.reports)


# --- a place in use for long --------------------------------------------------------------------

def test_what_was_learned_of_a_line_does_not_keep_it_from_being_helped(host, program):
    survived = "b=4096 a=6144 give a=6144 give".split()
    words = (program("asks"), "hold=8192", *survived * 2, "pend=4096", "a=6144")
    assert outcomes(host(*words, preload=False)) == ["b=4096 0", "a=6144 2", "a=6144 0"] * 2 + \
        ["a=6144 2"]
    run = host(*words)
    assert outcomes(run)[-1] == "a=6144 0"
    assert results(run.left) == ["recovered-by-caller", "recovered"]
    assert (run.last.code, run.drafts) == ("pending-free", [])


@pytest.mark.parametrize("end", ["return", "_exit"])
def test_server_that_goes_on_is_one_report_of_its_last_refusal(ends_alike, end):
    run = ends_alike(ASKS, FULL, "loop=1000", "b=1024", "give", "a=4096", "next", end)
    assert outcomes(run).count("a=4096 2") == 1000
    assert run.last.outcome == "failed"
    assert run.last.json["request"]["bytes"] == (4096 + 2 * 999) * MIB
    assert run.last.json["request"]["trials"] == 999
    assert len(run.lines_of_shim) <= 2
    assert len(run.reports) == 1 and len(run.drafts) <= (0 if end == "return" else 1)
    assert_alike(run.reports)


@pytest.mark.parametrize("end", ["return", "_exit"])
def test_server_that_is_refused_at_two_lines_in_turn_leaves_two_reports(ends_alike, end):
    run = ends_alike(ASKS, FULL, "loop=500", "a=4096", "c=8192", "next", end)
    assert sizes(run.left)[-1] == 8192 + 2 * 499
    assert run.last.outcome == "failed"
    assert len(run.reports) == 2
    assert len(run.lines_of_shim) <= 2
    if end == "return":
        assert sizes(run.left) == [4096 + 2 * 499, 8192 + 2 * 499]
        assert run.drafts == []
    assert_alike(run.reports)


def test_server_that_is_refused_and_answered_in_turn_keeps_the_one_that_was_not(asks):
    """The success voids what was put off, and only that."""
    run = asks("hold=8192", "b=4096", "a=6144", "give", "a=6144", "give", "c=8192")
    assert outcomes(run) == ["b=4096 0", "a=6144 2", "a=6144 0", "c=8192 2"]
    assert results(run.reports) == ["recovered-by-caller", "failed"]
    assert (sizes(run.reports), run.drafts) == ([6144, 8192], [])


@pytest.mark.parametrize("most", [1, 2])
def test_last_failure_is_told_though_there_were_more_places_than_reports(asks, most):
    run = asks(FULL, "a=8192", "b=7168", "c=6144", "d=5120",
               env={"GPUOOMSHIM_REPORT_MAX": str(most)})
    assert len(run.reports) == most
    assert (sizes(run.left)[-1], run.last.outcome) == (5120, "failed")
    assert run.drafts == []


# --- threads --------------------------------------------------------------------------------------

@pytest.mark.parametrize("env", [{}, SLOW], ids=["at once", "one by one"])
@pytest.mark.parametrize("count, rounds", [("2", "1"), ("2", "20"), ("16", "4"), ("64", "1")])
def test_threads_that_fail_at_one_line_are_one_report_and_one_line(same, program, count, rounds,
                                                                 env):
    run = same(program("threads_at_one_line"), count, rounds, env=env)
    assert outcomes(run) == ["one of many 2"] * int(count)
    assert (run.report.outcome, run.report.code) == ("failed", "exhausted-by-process")
    assert run.drafts == []
    assert len(run.lines_of_shim) == 1
    assert_alike(run.reports)


def test_64_threads_of_one_loop_whose_sizes_differ_are_one_report_and_one_line(same):
    run = same(PROGRAMS / "threads_at_one_line.linked", "64", "10", env={"GPUSIM_REFUSE_TIME": "500"})
    assert run.report.outcome == "failed" and run.drafts == []
    assert len(run.lines_of_shim) == 1


@pytest.mark.parametrize("how, order", [
    ("one_survives", ["other 2", "survivor 2", "survivor 0"]),
    ("other_fails", ["survivor 2", "survivor 0", "other 2"]),
])
def test_thread_that_survives_does_not_answer_for_another_one_at_the_same_line(
        same, program, how, order):
    run = same(program("threads_at_one_line"), how)
    assert outcomes(run) == order
    failed = [one for one in run.left if one.outcome == "failed"]
    assert sizes(failed)[-1:] == [7168], (run.files, run.stderr)


# --- words ----------------------------------------------------------------------------------------

def test_line_on_stderr_is_true_whether_or_not_the_program_goes_on(asks):
    (line,) = asks(FULL, "a=6144").lines_of_shim
    assert "cuMemAlloc of 6.00 GiB was refused" in line
    assert "failed" not in line


@pytest.mark.skipif(os.environ.get("GOS_EMULATOR", "") != "", reason="lines of Python")
def test_line_on_stderr_names_torch_and_the_line_of_the_program(same, python):
    run = same(python, TWO_LIBRARIES, env={"STUBS": str(PROGRAMS)})
    assert any("torch refused 4.00 GiB at one_line_two_libraries.py:" in line or
               "cudaMalloc of 4.00 GiB was refused" in line for line in run.lines_of_shim)
    assert all("failed" not in line for line in run.lines_of_shim)

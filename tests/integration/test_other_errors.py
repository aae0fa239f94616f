"""Errors of allocation calls that are not about memory, and what other calls needed of it."""
import subprocess

import pytest

from hosts import BUILD, MIB

CODES = {3: "driver-or-context", 34: "driver-or-context", 46: "driver-or-context",
         100: "driver-or-context", 201: "driver-or-context", 700: "driver-or-context",
         719: "driver-or-context", 800: "driver-or-context", 803: "driver-or-context",
         804: "driver-or-context", 808: "policy-limit", 900: "in-capture", 901: "in-capture",
         905: "in-capture", 906: "in-capture", 908: "in-capture"}


def failing(*rules):
    return {"GPUSIM_FAIL": ",".join(rules)}


def advice_of(report):
    return " ".join(report.json["verdict"]["advice"])


@pytest.mark.parametrize("result", CODES)
def test_error_that_ends_jobs_is_told_once_for_each_line(same, program, result):
    run = same(program("ends_jobs"), "lines", env=failing(f"cuMemAlloc_v2:{result}"))
    assert [report.code for report in run.reports] == [CODES[result]] * 2
    assert len(run.lines_of_shim) == 2
    for report in run.reports:
        verdict = report.json["verdict"]
        assert (report.outcome, report.json["request"]["attempts"]) == ("failed", 1)
        assert (verdict["confidence"], verdict["runner_up"]) == ("proven", None)
        assert verdict["short_bytes"] == 0
        assert [step["result"] for step in report.json["recovery"]] == ["skipped"]
        assert "done       nothing: the error is not out-of-memory" in report.text
        assert "\nheld by" not in report.text


@pytest.mark.parametrize("result", [1, 4, 801, 999])
def test_answer_that_callers_live_with_is_not_told(same, program, result):
    run = same(program("ends_jobs"), "lines", env=failing(f"cuMemAlloc_v2:{result}"))
    assert (run.files, run.lines_of_shim) == ([], [])


@pytest.mark.parametrize("symbol", ["cuMemFree_v2", "cuMemFreeAsync", "cuMemCreate",
                                    "cuMemHostRegister_v2"])
def test_free_or_probed_kind_that_is_not_permitted_is_not_told(host, program, symbol):
    run = host(program("alloc_kinds"), env=failing(f"{symbol}:800"))
    assert "gave 800 where it must not" in run.stdout
    assert run.reports == []


def test_errors_of_too_many_lines_leave_room_for_others(same, program):
    run = same(program("ends_jobs"), "many", env=failing("cuMemAlloc_v2:46"))
    assert len(run.reports) == 8
    (line,) = [line for line in run.lines_of_shim if "no more of them are told" in line]
    assert "8 times" in line


def test_capture_that_an_allocation_lost_is_told_and_ends_as_without_us(same, program):
    run = same(program("ends_jobs"), "capture")
    assert "outcome: graph none\n" in run.stdout and "outcome: afterwards 0\n" in run.stdout
    first, then = run.reports
    assert (first.json["request"]["result"], then.json["request"]["result"]) == (900, 901)
    assert (first.code, then.code) == ("in-capture", "in-capture")
    assert first.json["request"]["capture"] == "elsewhere"
    assert then.json["request"]["capture"] == "this-stream"
    assert "the capture was begun at " in first.json["verdict"]["summary"]
    assert any("the same thread began it" in line for line in first.json["verdict"]["evidence"])
    assert any("invalidated by cuMemAlloc_v2 of the same thread, which returned 900" in line
               for line in then.json["verdict"]["evidence"])
    assert "warm-up" in advice_of(first)


def test_capture_that_goes_wrong_makes_no_story_of_memory(same, program):
    """The device is nearly empty, and nothing is tried."""
    report = same(program("ends_jobs"), "capture").reports[0]
    assert report.json["verdict"]["short_bytes"] == 0
    assert report.json["recovery"][0]["reason"] == "the error is not out-of-memory"


def test_in_a_host_function_the_driver_is_not_asked(same, program, tmp_path):
    trace = tmp_path / "trace"
    run = same(program("ends_jobs"), "host",
               env={**failing("cuMemAlloc_v2:800"), "GPUSIM_TRACE": str(trace)})
    assert "outcome: on the host 800\n" in run.stdout
    report = run.report
    assert report.code == "driver-or-context"
    assert "host" in advice_of(report)
    assert any("permits no call here" in line for line in report.json["incomplete"])
    lines = trace.read_text(encoding="utf-8").splitlines()
    after = lines[len(lines) - 1 - lines[::-1].index("cuMemAlloc_v2 800") + 1:]
    assert after[0] == "cuStreamSynchronize 0", after


def test_forked_workers_say_so_in_one_line_each(same, program):
    run = same(program("ends_jobs"), "workers")
    assert [report.code for report in run.reports] == ["forked"] * 3
    assert len({report.json["process"]["pid"] for report in run.reports}) == 3
    assert len(run.lines_of_shim) == 3
    assert all("failed: forked (proven)" in line for line in run.lines_of_shim)


# --- error 2 of what is no allocation

NEEDS = [
    ("cuCtxSetLimit:2:1", "heap of kernels (CU_LIMIT_MALLOC_HEAP_SIZE): 4.00 GiB", 4096 * MIB,
     "Set a lower limit"),
    ("cuCtxSetLimit:2:2", "64 KiB for each of 270336 threads, up to 16.50 GiB",
     65536 * 270336, "Set a lower limit"),
    ("cuLaunchKernel:2:2", "local memory of the kernel: 8 KiB for each of 270336 threads",
     8192 * 270336, "less local memory"),
    ("cuLaunchKernel:2:1", "loaded at its first launch", None, "Load kernels"),
    ("cuModuleLoadData:2", "the module's code and variables (its size is not known)", None,
     "Load kernels"),
    ("cuStreamCreate:2", "a stream (some MiB at most)", None, "use them again"),
    ("cuEventCreate:2", "an event", None, "use them again"),
    ("cuDevicePrimaryCtxRetain:2:2", "a context (about 51", None, None),
]


@pytest.mark.parametrize("failure, words, need, advice", NEEDS)
def test_what_a_call_needed_is_said_as_far_as_it_is_known(host, program, failure, words, need,
                                                          advice):
    """Of 15,872 MiB 15,860 are in use: what has no size does not fit either."""
    env = {**failing(failure), "GPUSIM_LOCAL": "8192"}
    run = host(program("watched_needs"), "15860", env=env)
    bare = host(program("watched_needs"), "15860", env=env, preload=False)
    assert run.stdout == bare.stdout
    report = run.report
    assert words in report.json["request"]["need"]
    assert report.json["request"]["need_bytes"] == need
    assert "it needed" in report.text.split("VERDICT")[0]
    assert report.code == "exhausted-by-process"
    if advice:
        assert advice in advice_of(report)
    elif failure.startswith("cuDevicePrimary"):
        assert "Load kernels" not in advice_of(report)


def test_shortfall_of_a_limit_is_reckoned(host, program):
    report = host(program("watched_needs"), "14000", env=failing("cuCtxSetLimit:2:1")).report
    assert report.json["verdict"]["short_bytes"] == (4096 - (15872 - 14000)) * MIB
    assert "4.00 GiB needed" in report.text


def test_kernel_that_is_not_loaded_is_not_loaded_by_the_question(host, program, tmp_path):
    trace = tmp_path / "trace"
    host(program("watched_needs"), "15860",
         env={**failing("cuLaunchKernel:2:1"), "GPUSIM_TRACE": str(trace)})
    lines = trace.read_text(encoding="utf-8").splitlines()
    assert "cuFuncIsLoaded 0" in lines
    assert not any(line.startswith("cuFuncGetAttribute") for line in lines)


def test_report_that_is_read_back_says_what_was_needed(host, program):
    report = host(program("watched_needs"), "14000", env=failing("cuCtxSetLimit:2:1")).report
    shown = subprocess.run([BUILD / "gpuoomshim", "show", report.path], capture_output=True,
                           text=True, check=True).stdout
    assert "it needed  the heap of kernels (CU_LIMIT_MALLOC_HEAP_SIZE): 4.00 GiB" in shown
    assert "4.00 GiB needed" in shown

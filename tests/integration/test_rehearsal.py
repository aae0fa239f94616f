"""A device that acts as a smaller one, and failures made on purpose.

What a program sees, and what the reports say, is compared with what they are on a
simulated device that is as small as the limit.
"""
import sys

import pytest

from hosts import BUILD, MIB, PROGRAMS, ROOT

sys.path.insert(0, str(ROOT / "tests" / "differential"))

from generate import generate  # noqa: E402

LIMIT = {"GPUOOMSHIM_LIMIT": "8GiB"}
SMALL = {"GPUSIM_MEMORY": "8192"}
GIB = 1024 * MIB
# Views of NVML: contexts and modules are measured in another way under each.
VIEWS = ["full", "own", "empty", "forbidden", "absent"]


def marks(report):
    """What the report says of the rehearsal, without the counts of calls."""
    return {name: value for name, value in report.json["rehearsal"].items()
            if not name.endswith("_count")}


def told(report):
    """What must not depend on whether the device is small or only acts so."""
    verdict, request = report.json["verdict"], report.json["request"]
    return {
        "outcome": report.outcome,
        "verdict": (verdict["code"], verdict["confidence"], verdict["runner_up"]),
        "summary": verdict["summary"],
        "short": verdict["short_bytes"],
        "request": (request["api"], request["kind"], request["bytes"], request["attempts"]),
        "steps": [(step["step"], step["result"], step["reason"])
                  for step in report.json["recovery"]],
        "ledger": {item: size for item, size in report.ledger().items() if item != "withheld"},
        "sites": sorted(site["live_bytes"] for site in report.json["sites"]),
    }


def as_on_a_small_device(host, *command, env=None):
    small = host(*command, env={**SMALL, **(env or {})})
    limited = host(*command, env={**LIMIT, **(env or {})})
    assert limited.code == small.code == 0, limited.stdout + limited.stderr
    assert limited.stdout == small.stdout
    return small, limited


@pytest.mark.parametrize("words", [("scenario_3",), ("scenario_4",), ("scenario_6", "512")],
                         ids=lambda words: words[0])
def test_reports_are_those_of_a_small_device_and_marked(host, program, words):
    small, limited = as_on_a_small_device(host, program(words[0]), *words[1:])
    assert [told(report) for report in limited.reports] == \
        [told(report) for report in small.reports]
    assert limited.reports
    for report in limited.reports:
        assert marks(report) == {"limit_bytes": 8 * GIB, "limited": True,
                                 "injecting": False, "injected": False}
        assert report.ledger()["withheld"] == 8 * GIB
        assert report.device()["limit_bytes"] == 8 * GIB
        assert "rehearsal  GPU 0 acts as one of 8.00 GiB" in report.text
    for report in small.reports:
        assert report.json["rehearsal"] is None
        assert "ehearsal" not in report.text
    (first, *others, last) = limited.lines_of_shim
    assert first == "gpuoomshim: rehearsal: each GPU acts as one of 8.00 GiB (GPUOOMSHIM_LIMIT)"
    assert all("(under GPUOOMSHIM_LIMIT)" in line for line in others)
    count = len(limited.reports)
    assert last == f"gpuoomshim: rehearsal: calls that were refused: {count} (GPUOOMSHIM_LIMIT)"
    assert limited.reports[-1].json["rehearsal"]["limited_count"] == count


@pytest.mark.parametrize("part", ["before", "info", "kinds", "pools", "blocks", "contexts",
                                  "child"])
def test_program_sees_a_small_device(host, program, part):
    small, limited = as_on_a_small_device(host, program("rehearse_limit"), part)
    # What nothing else explains there is known here to be the limit's doing.
    expected = ["policy-limit" if report.code == "unexplained" else report.code
                for report in small.reports]
    assert [report.code for report in limited.reports] == expected
    assert len(limited.stdout.splitlines()) > 2


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("part", ["info", "kinds", "contexts"])
def test_contexts_are_counted_whatever_nvml_shows(host, view, part):
    as_on_a_small_device(host, PROGRAMS / "rehearse_limit.linked", part,
                         env={"GPUSIM_NVML": view})


def test_modules_are_counted(host):
    """A module of 300 MiB is loaded by the launch; the ledger's context line has it."""
    env = {"GPUSIM_MODULE": "300", "GPUOOMSHIM_INJECT": "every=1,kind=host"}
    run = host(PROGRAMS / "rehearse_inject.linked", "kinds",
               env={**LIMIT, **env, "GPUOOMSHIM_EXIT_REPORT": "1"})
    ledger = run.reports[-1].ledger()
    # The ledger cannot tell resident managed memory from modules.
    assert ledger["context_modules"] + ledger["live_managed"] == (512 + 300) * MIB
    assert ledger["withheld"] == 8 * GIB
    assert sum(ledger.values()) - ledger["withheld"] - ledger["driver_reserve"] == 8 * GIB


def test_sixteen_threads_never_have_more_than_the_limit(host, program):
    run = host(program("rehearse_limit"), "threads",
               env={"GPUOOMSHIM_LIMIT": "2GiB", "GPUOOMSHIM_RETRY": "off"})
    assert run.code == 0, run.stdout + run.stderr
    assert run.stdout == "outcome: overshoots 0, served 1\noutcome: all is back 1\n"


def test_without_a_limit_sixteen_threads_have_more(host):
    """The test above sees what it should see."""
    run = host(PROGRAMS / "rehearse_limit.linked", "threads", "1536")
    assert run.code == 0
    assert "overshoots 0," not in run.stdout


@pytest.mark.parametrize("words", [("alloc_kinds",), ("churn",), ("fail_together", "16"),
                                   ("refused_free",), ("forked",)], ids=lambda words: words[0])
def test_other_hosts_behave_under_a_limit(host, program, words):
    as_on_a_small_device(host, program(words[0]), *words[1:])


@pytest.mark.parametrize("way, first", [("linked", 1), ("dlsym", 1001), ("resolver", 2001)])
def test_generated_calls_have_the_answers_of_a_small_device(host, tmp_path, way, first):
    """Results, out-parameters and what is free, after each of 8,000 calls from four threads."""
    path = tmp_path / "sequences"
    path.write_text(generate(first, 100, 80, "all"))
    command = (BUILD / "tests" / "differential" / f"differential.{way}", path)
    small = host(*command, preload=False, env={"GPUSIM_DEVICES": "2", "GPUSIM_MEMORY": "2048"})
    limited = host(*command, env={"GPUSIM_DEVICES": "2", "GPUOOMSHIM_LIMIT": "2GiB",
                                  "GPUOOMSHIM_RETRY": "off"})
    pairs = zip(small.stdout.splitlines(), limited.stdout.splitlines())
    assert [pair for pair in pairs if pair[0] != pair[1]][:1] == []
    assert limited.stdout == small.stdout
    assert "2 left" in small.stdout  # some were refused


def test_only_the_device_that_is_named_is_limited(host):
    run = host(PROGRAMS / "rehearse_limit.linked", "info",
               env={"GPUOOMSHIM_LIMIT": "1:8GiB", "GPUSIM_DEVICES": "2"})
    assert "outcome: total 16384\n" in run.stdout
    assert "outcome: nvml total 16984\n" in run.stdout
    run = host(PROGRAMS / "rehearse_limit.linked", "info",
               env={"GPUOOMSHIM_LIMIT": "0:8GiB,1:4GiB", "GPUSIM_DEVICES": "2"})
    assert "outcome: total 8192\n" in run.stdout
    assert "outcome: nvml total 8792\n" in run.stdout
    assert "GPU 0 acts as one of 8.00 GiB, GPU 1 acts as one of 4.00 GiB" in run.stderr


def uuid_of_first(host):
    return host(PROGRAMS / "scenario_4.linked").report.device()["uuid"]


def nvml_totals(run):
    """Of NVML's first device by both calls: before there is CUDA, and with it."""
    lines = [line.split()[-1] for line in run.stdout.splitlines() if " total " in line]
    return [int(number) for number in lines]


@pytest.mark.parametrize("limit, visible, totals", [
    ("0:8GiB", None, [8792] * 4),
    ("1:8GiB", None, [16984] * 4),
    ("0:8GiB", "1", [16984, 16984]),  # not the first of CUDA's, nor any
    ("0:8GiB", "0", [8792, 8792]),
    ("1:8GiB", "1,0", [8792, 8792]),
    ("0:8GiB", "{uuid}", [8792, 8792]),
], ids=str)
def test_nvml_tells_of_a_limit_before_there_is_cuda(host, limit, visible, totals):
    env = {"GPUOOMSHIM_LIMIT": limit, "GPUSIM_DEVICES": "2"}
    if visible:
        env["CUDA_VISIBLE_DEVICES"] = visible.format(uuid=uuid_of_first(host))
    run = host(PROGRAMS / "rehearse_limit.linked", "before", env=env)
    # The simulated driver shows all devices whatever is set.
    assert nvml_totals(run)[:len(totals)] == totals, run.stdout


def test_limit_above_the_device_changes_nothing(same):
    run = same(PROGRAMS / "scenario_4.linked", env={"GPUOOMSHIM_LIMIT": "100GiB"})
    assert run.report.ledger()["withheld"] == 0
    assert run.report.json["rehearsal"]["limited"] is False


def test_limit_that_cannot_be_read_is_said_and_is_none(same):
    run = same(PROGRAMS / "scenario_4.linked", env={"GPUOOMSHIM_LIMIT": "lots"})
    assert "GPUOOMSHIM_LIMIT=lots cannot be used" in run.stderr
    assert run.report.json["rehearsal"] is None


def test_disabled_library_limits_nothing(host):
    run = host(PROGRAMS / "rehearse_limit.linked", "info",
               env=dict(LIMIT, GPUOOMSHIM_DISABLE="1", GPUOOMSHIM_INJECT="every=1"))
    assert "outcome: total 16384\n" in run.stdout
    assert "outcome: nvml total 16984\n" in run.stdout
    assert run.stderr == ""


def test_neighbours_on_the_real_device_are_still_named(host, program, tmp_path):
    """The limit leaves room; the other process has taken what is really there."""
    run = host(program("scenario_5"), "stays",
               env={"GPUSIM_STATE": str(tmp_path / "state"), "GPUOOMSHIM_LIMIT": "15GiB"})
    report = run.reports[0]
    assert report.code == "exhausted-by-others"
    assert report.json["rehearsal"]["limited"] is False
    assert report.json["rehearsal"]["limit_bytes"] == 15 * GIB


# --- injection ------------------------------------------------------------------------------------


def inject(host, program, value, *words, **more):
    return host(program, *words, env={"GPUOOMSHIM_INJECT": value, **more})


def failed_numbers(run):
    return [int(line.split()[1]) for line in run.stdout.splitlines() if " gives 2 and 0" in line]


@pytest.mark.parametrize("value, numbers", [
    ("nth=5", [5]),
    ("nth=500", []),
    ("every=8", [8, 16, 24, 32, 40, 48, 56]),
    ("share=0.1,seed=7", [39, 41, 45, 50, 56]),
    ("share=1,max=3MiB", [1, 2, 3]),
    ("every=2,min=50MiB,max=55MiB", [51, 53, 55]),
    ("every=1,kind=async", []),
    ("every=20,kind=device,kind=async", [20, 40, 60]),
    ("every=20,site=rehearse_inject", [20, 40, 60]),
    ("every=1,site=libcublas", []),
    ("off", []),
])
def test_exactly_those_that_were_named_fail(host, program, value, numbers):
    run = inject(host, program("rehearse_inject"), value, "device", "60",
                 GPUOOMSHIM_REPORT_ON="all")
    assert run.code == 0
    assert failed_numbers(run) == numbers
    # Those that follow one another at one line, with no success between them, are one story.
    ends = [at for at, number in enumerate(numbers, 1) if number + 1 not in numbers]
    assert len(run.reports) == len(ends)
    for report in run.reports:
        assert report.code == "injected"
        assert marks(report) == {"limit_bytes": None, "limited": False,
                                 "injecting": True, "injected": True}
        assert "this failure was injected by GPUOOMSHIM_INJECT" in report.text
        (step,) = report.json["recovery"]
        assert (step["result"], step["reason"]) == \
            ("skipped", "the failure was injected, without recover=1")
    assert [report.json["rehearsal"]["injected_count"] for report in run.reports] == \
        ends
    said = [line for line in run.lines_of_shim if "made to fail" in line]
    assert len(said) == 2 * (value != "off")
    if said:
        assert said[-1].startswith(f"gpuoomshim: rehearsal: {len(numbers)} of ")


KINDS = {"device": ["device", "pitched"], "managed": ["managed"], "async": ["async"],
         "host": ["host"], "load": ["load"], "launch": ["launch"]}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_are_told_apart(host, program, kind):
    run = inject(host, program("rehearse_inject"), f"every=1,kind={kind}", "kinds")
    results = dict(line.split()[1:] for line in run.stdout.splitlines())
    assert [name for name, result in results.items() if result == "2"] == KINDS[kind]


def test_call_is_not_made_at_all(host, tmp_path):
    trace = tmp_path / "trace"
    run = inject(host, PROGRAMS / "rehearse_inject.linked", "every=1", "device", "5",
                 GPUSIM_TRACE=str(trace))
    assert failed_numbers(run) == [1, 2, 3, 4, 5]
    assert "cuMemAlloc_v2" not in trace.read_text()


def test_as_many_fail_in_many_threads_as_in_one(host, program):
    assert "failed 80\n" in inject(host, program("rehearse_inject"), "every=10", "threads",
                                   "100").stdout
    share = {inject(host, program("rehearse_inject"), "share=0.1,seed=7", "threads", "100").stdout
             for _ in range(2)}
    assert share == {"outcome: failed 84\n"}


def test_caller_that_asks_again_survives(host, program):
    run = inject(host, program("rehearse_inject"), "every=10", "retry", "50")
    assert run.code == 0, run.stdout
    assert "outcome: survived 5\n" in run.stdout
    assert {report.outcome for report in run.reports} <= {"recovered-by-caller", "failed"}


def test_recovery_is_tried_only_if_asked_for(host, program):
    run = inject(host, program("rehearse_inject"), "nth=2", "pending")
    assert "outcome: behind a pending free 2\n" in run.stdout
    run = inject(host, program("rehearse_inject"), "nth=2,recover=1", "pending")
    assert "outcome: behind a pending free 0\n" in run.stdout
    assert (run.report.code, run.report.outcome) == ("injected", "recovered")
    assert run.report.json["rehearsal"]["injected"] is True
    assert run.report.steps("sync")[0]["result"] == "helped"


def test_recovery_that_finds_nothing_to_do_leaves_the_failure(host, program):
    run = inject(host, program("rehearse_inject"), "nth=3,recover=1", "device", "5")
    assert failed_numbers(run) == [3]
    assert all(step["result"] == "skipped" for step in run.report.json["recovery"])


def test_real_failure_beside_an_injected_one_is_told_as_what_it_is(host):
    run = host(PROGRAMS / "scenario_4.linked", env={"GPUOOMSHIM_INJECT": "nth=100"})
    assert run.report.code == "exhausted-by-process"
    assert marks(run.report) == {"limit_bytes": None, "limited": False,
                                 "injecting": True, "injected": False}


def test_real_failures_after_an_injected_one_are_a_story_of_their_own(host, program):
    run = host(program("rehearse_inject"), "retry", "1",
               env={"GPUOOMSHIM_INJECT": "nth=1", "GPUSIM_FAIL": "cuMemAlloc_v2:2"})
    assert [report.code for report in run.reports] == ["injected", "unexplained"]


def test_value_that_cannot_be_read_is_said_once_and_injects_nothing(same):
    run = same(PROGRAMS / "rehearse_inject.linked", "device", "5",
               env={"GPUOOMSHIM_INJECT": "sometimes"})
    (line,) = run.lines_of_shim
    assert "GPUOOMSHIM_INJECT=sometimes cannot be used" in line


TORCH_LIKE = """
import ctypes, sys
torch = ctypes.CDLL(sys.argv[1])
number = ctypes.c_int()
for _ in range(4):
    print("outcome: take", torch.stub_torch_take(ctypes.byref(number), ctypes.c_size_t(1 << 20)))
"""


def test_allocator_that_retries_survives_in_silence(host, python, tmp_path):
    script = tmp_path / "model.py"
    script.write_text(TORCH_LIKE)
    run = host(python, script, PROGRAMS / "libc10_cuda.so", env={"GPUOOMSHIM_INJECT": "nth=3"})
    assert run.stdout == "outcome: take 0\n" * 4, run.stderr
    first, last = run.lines_of_shim
    assert first.startswith("gpuoomshim: rehearsal: some allocations will be made to fail")
    assert last == "gpuoomshim: rehearsal: 1 of 5 calls were made to fail (GPUOOMSHIM_INJECT)"
    assert run.reports == []


def test_setting_that_meets_no_call_is_told_from_one_that_is_survived(host, program):
    run = inject(host, program("rehearse_inject"), "nth=500", "device", "3")
    assert run.lines_of_shim[-1] == \
        "gpuoomshim: rehearsal: 0 of 3 calls were made to fail (GPUOOMSHIM_INJECT)"


def test_reports_of_no_call_tell_how_many_were_made_to_fail(host, program):
    run = inject(host, program("rehearse_inject"), "every=2", "device", "7",
                 GPUOOMSHIM_EXIT_REPORT="1", GPUOOMSHIM_RETRY="off", **LIMIT)
    at_exit = run.reports[-1]
    assert at_exit.json["kind"] == "exit"
    assert at_exit.json["rehearsal"]["candidate_count"] == 7
    assert at_exit.json["rehearsal"]["injected_count"] == 3
    assert "rehearsal  3 of 7 calls were made to fail so far (GPUOOMSHIM_INJECT); GPU 0 acts" \
        in at_exit.text
    assert "calls refused so far: 0" in at_exit.text
    assert "this failure" not in at_exit.text


@pytest.mark.parametrize("site, fails", [("model.py:6", True), ("model.py", True),
                                         ("model.py:5", False), ("del.py:6", False),
                                         ("libc10_cuda", True)])
def test_site_is_a_line_of_python_or_a_library(host, python, tmp_path, site, fails):
    script = tmp_path / "model.py"
    script.write_text(TORCH_LIKE)
    run = host(python, script, PROGRAMS / "libc10_cuda.so",
               env={"GPUOOMSHIM_INJECT": f"every=1,site={site}"})
    # Its second attempt fails as well: it gives up.
    assert run.stdout == f"outcome: take {2 if fails else 0}\n" * 4, run.stderr
    assert bool(run.reports) == fails


def test_command_shows_a_rehearsal_as_the_library_wrote_it(host, program):
    run = inject(host, program("rehearse_inject"), "nth=2", "device", "3", **LIMIT)
    report = run.report
    shown = host(BUILD / "gpuoomshim", "show", report.path, preload=False)
    assert shown.stdout.splitlines()[:8] == report.text.splitlines()[:8]
    assert "this failure was injected" in shown.stdout

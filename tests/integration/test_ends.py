"""However a program ends, its last failure is on disk: a report, or a draft that becomes one."""
import os
import shutil
import signal
import subprocess
import time

import pytest

from hosts import LOAD_PATHS, MIB, PROGRAMS, ROOT, SIM, left_in, library_variables, shown
from pythons import KNOWN, of_versions

WORKER = ROOT / "tests" / "programs" / "worker_fails.py"
FULL = "hold=12288"  # of 15,872
SURVIVED = "hold=8192 b=4096 a=6144 give a=6144 give".split()  # at line a, once

NORMAL = ["return", "exit", "quick_exit"]
HARD = ["_exit", "abort", "kill", "exec"]

# What happens before the end, under which name, and the size of the last failure.
SITUATIONS = {
    "the first failure": ("asks", [FULL, "a=6144"], 6144),
    "what a line survived before": ("asks", [*SURVIVED, "b=4096", "a=6144"], 6144),
    "with more than it survived before": ("asks", [*SURVIVED, "b=4096", "a=7168"], 7168),
    "the first attempt of torch": ("libc10_cuda_asks", [FULL, "a=6144"], 6144),
    "the second attempt of torch": ("libc10_cuda_asks", [FULL, "a=6144", "a=6144"], 6144),
    "the only attempt of CuPy": ("libcupy_asks", [FULL, "a=6144"], 6144),
    "the last attempt of CuPy": ("libcupy_asks", [FULL] + 3 * ["a=6144"], 6144),
    "the last attempt of XLA": ("xla_extension_asks", [FULL, "a=8192", "a=7168", "a=6144"], 6144),
    "another line, with less": ("asks", [FULL, "a=10240", "b=6144"], 6144),
    "a line that was told before": ("asks", [FULL, "a=10240", "a=6144"], 6144),
    "a line that was told before another one": ("asks", [FULL, "a=9216", "b=8192", "a=6144"], 6144),
}


@pytest.fixture
def asks(tmp_path):
    """Path of the host that does what its words say, under that name."""
    def named(name, way="linked"):
        path = tmp_path / name
        if not path.exists():
            shutil.copy(PROGRAMS / f"asks.{way}", path)
        return path

    return named


def assert_last(run, mib):
    last = run.last
    assert last.json["request"]["bytes"] == mib * MIB
    assert (last.outcome, last.code) == ("failed", "exhausted-by-process")
    assert last.ledger()["live_device"] == 12288 * MIB


def assert_whole(run):
    """Reports have both files, which say the same; nothing else is left."""
    numbers = {name.rsplit(".", 1)[0] for name in run.files}
    assert sorted(run.files) == sorted(n + end for n in numbers for end in (".json", ".txt"))
    for report in run.reports:
        assert shown(report.path) == report.text


# --- the process itself ---------------------------------------------------------------------------

@pytest.mark.parametrize("end", NORMAL)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_normal_end_leaves_a_report_of_the_last_failure(ends_alike, asks, situation, end):
    name, words, mib = SITUATIONS[situation]
    run = ends_alike(asks(name), *words, end)
    assert_last(run, mib)
    assert_whole(run)


@pytest.mark.parametrize("end", HARD)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_hard_end_leaves_a_report_or_a_draft_of_the_last_failure(ends_alike, asks, situation, end):
    name, words, mib = SITUATIONS[situation]
    run = ends_alike(asks(name), *words, end)
    assert_last(run, mib)
    assert run.last.text


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_end_by_what_a_line_survived_before_is_told_through_each_way(ends_alike, program, end):
    _, words, mib = SITUATIONS["what a line survived before"]
    run = ends_alike(program("asks"), *words, end)
    assert_last(run, mib)
    assert run.last.json["request"]["trials"] == 0


@pytest.mark.parametrize("end", NORMAL + HARD)
def test_place_that_was_survived_once_is_told_again_only_at_a_normal_end(ends_alike, asks, end):
    run = ends_alike(asks("asks"), *SURVIVED, "b=4096", "a=6144", end)
    assert 1 <= len(run.lines_of_shim) <= (2 if end in NORMAL else 1)


@pytest.mark.parametrize("end", NORMAL + HARD)
@pytest.mark.parametrize("name", ["libc10_cuda_asks", "libcupy_asks", "xla_extension_asks"])
def test_answered_attempts_of_a_library_leave_nothing(ends_alike, asks, name, end):
    words = ["hold=8192", "b=4096", "a=6144", "give", "a=6144"]
    run = ends_alike(asks(name), *words, end)
    assert "outcome: a=6144 0\n" in run.stdout
    assert [one.outcome for one in run.left if one.outcome == "failed"] == []
    assert run.lines_of_shim == []
    if end in NORMAL:
        assert run.files == []


@pytest.mark.parametrize("end", NORMAL + HARD)
def test_answered_refusals_of_a_learned_line_leave_nothing_more(ends_alike, asks, end):
    run = ends_alike(asks("asks"), *SURVIVED, *["b=4096", "a=6144", "give", "a=6144", "give"] * 3,
                     end)
    assert [one.outcome for one in run.left] == ["recovered-by-caller"]
    assert len(run.lines_of_shim) == 1
    if end in NORMAL:
        assert_whole(run)


def test_signal_from_outside_leaves_the_last_failure(tmp_path, asks):
    with waiting(tmp_path, asks("asks"), *SURVIVED, "b=4096", "a=6144") as (process, folder):
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    assert left_in(folder)[-1].json["request"]["bytes"] == 6144 * MIB


# --- C++ ------------------------------------------------------------------------------------------

def test_exception_that_ends_the_program_leaves_the_failure_behind_it(ends_alike, program):
    """std::terminate, after the same line was survived with twice the size."""
    run = ends_alike(program("batch_halved"))
    assert run.code == -signal.SIGABRT
    assert (run.last.outcome, run.last.json["request"]["bytes"]) == ("failed", 5120 * MIB)
    assert len(run.lines_of_shim) == 1


def test_exception_that_is_caught_leaves_what_was_survived(same, program):
    run = same(program("batch_halved"), "caught")
    assert run.report.outcome == "recovered-by-caller"
    assert_whole(run)
    assert "failed" not in run.stderr


# --- Python ---------------------------------------------------------------------------------------

@pytest.fixture(params=of_versions(KNOWN), ids=lambda path: path.split("/")[-3])
def each_python(request):
    return request.param


def test_forked_worker_that_dies_after_a_survived_failure_leaves_its_last_one(same, each_python):
    run = same(each_python, WORKER, "worker")
    assert run.stdout.endswith("outcome: load 7168 2\noutcome: worker 1\n")
    assert (run.last.outcome, run.last.json["request"]["bytes"]) == ("failed", 7168 * MIB)
    assert len(run.lines_of_shim) == 1


@pytest.mark.parametrize("end", ["exception", "thread", "sys_exit", "_exit", "abort", "kill", "exec"])
def test_python_that_survived_a_line_leaves_its_last_failure_there(ends_alike, python, end):
    run = ends_alike(python, WORKER, end)
    assert run.stdout.endswith("outcome: load 7168 2\n")
    assert (run.last.outcome, run.last.json["request"]["bytes"]) == ("failed", 7168 * MIB)
    assert any("worker_fails.py" in (frame["file"] or "") and frame["function"] == "load"
               for frame in run.last.json["request"]["stack"]["python"])
    if end in ("exception", "thread", "sys_exit"):
        assert_whole(run)


# --- in time --------------------------------------------------------------------------------------

@pytest.fixture
def photographed(host, asks, tmp_path):
    """Runs asks; gives what the folder held at each photo=NAME, and the run."""
    def run(name, *words, way="linked"):
        photos = tmp_path / "photos"
        photos.mkdir()
        done = host(asks(name, way), *words, env={"PHOTOS": str(photos)})
        return {path.name: left_in(path) for path in photos.iterdir()}, done

    return run


@pytest.mark.parametrize("situation", SITUATIONS)
def test_report_or_draft_is_there_when_the_failing_call_returns(photographed, situation):
    name, words, mib = SITUATIONS[situation]
    photos, _ = photographed(name, *words, "photo=then")
    last = photos["then"][-1]
    assert (last.outcome, last.json["request"]["bytes"]) == ("failed", mib * MIB)


@pytest.mark.parametrize("way", LOAD_PATHS)
def test_each_failure_of_a_line_is_there_when_its_call_returns(photographed, way):
    mibs = [8192, 6144, 10240, 4096, 4096]
    words = [word for number, mib in enumerate(mibs) for word in (f"a={mib}", f"photo={number}")]
    photos, run = photographed("asks", FULL, *words, way=way)
    for number, mib in enumerate(mibs):
        last = photos[str(number)][-1]
        assert last.json["request"]["bytes"] == mib * MIB
        assert last.json["request"]["trials"] == number
    assert len(run.reports) == 1 and run.drafts == []


def test_text_and_json_appear_together_and_say_the_same(photographed, tmp_path):
    words = "a=8192 photo=1 a=6144 photo=2 b=4096 photo=3 a=9216 photo=4".split()
    photographed("asks", FULL, *words)
    for folder in (tmp_path / "photos").iterdir():
        for path in folder.glob("*.json"):
            assert shown(path) == path.with_suffix(".txt").read_text(encoding="utf-8"), path
        assert {p.stem for p in folder.glob("*.txt")} == {p.stem for p in folder.glob("*.json")}


def test_answer_voids_the_draft_at_once(photographed):
    photos, _ = photographed("asks", *SURVIVED, "b=4096", "a=6144", "photo=refused", "give",
                             "a=6144", "photo=answered")
    assert [one.outcome for one in photos["refused"]][-1] == "failed"
    assert [one.outcome for one in photos["answered"]] == ["recovered-by-caller"]


# --- the next start -------------------------------------------------------------------------------

def start(folder, *command, **environment):
    """In a folder of reports that others use as well."""
    full = {**os.environ, **library_variables(command, True, True),
            "GPUOOMSHIM_REPORT_DIR": str(folder), **environment}
    return subprocess.Popen([str(word) for word in command], env=full, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process):
    _, stderr = process.communicate(timeout=60)
    return stderr


class waiting:
    """The host, once it has said all that its words are about, in a folder of its own."""

    def __init__(self, tmp_path, program, *words, after=()):
        self.folder = tmp_path / "shared"
        self.folder.mkdir()
        self.asked = sum(word[1] == "=" for word in words)
        self.process = start(self.folder, program, *words, "wait", *after)

    def __enter__(self):
        for _ in range(self.asked):
            self.process.stdout.readline()
        return self.process, self.folder

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate(timeout=60)


def endings(folder):
    return sorted(path.suffix for path in folder.iterdir())


@pytest.fixture
def dead(tmp_path, asks):
    """The folder and the pid of a process that was killed after a failure that was put off."""
    folder = tmp_path / "shared"
    folder.mkdir()
    process = start(folder, asks("libcupy_asks"), FULL, "a=6144", "kill")
    finish(process)
    assert endings(folder) == [".draft"]
    return folder, process.pid


@pytest.mark.parametrize("way", LOAD_PATHS)
def test_next_start_makes_a_report_of_the_draft_of_a_process_that_is_dead(dead, way):
    folder, pid = dead
    (draft,) = left_in(folder)
    finish(start(folder, PROGRAMS / f"asks.{way}", "a=1024"))
    assert endings(folder) == [".json", ".txt"]
    (report,) = left_in(folder)
    assert report.json["process"]["pid"] == pid
    assert report.json["request"] == draft.json["request"]
    assert (report.outcome, report.code) == ("failed", "exhausted-by-process")
    assert shown(report.path) == report.text


def test_draft_of_a_process_that_lives_is_left_alone(tmp_path, asks):
    with waiting(tmp_path, asks("libcupy_asks"), FULL, "a=6144") as (process, folder):
        finish(start(folder, PROGRAMS / "asks.linked", "a=1024"))
        assert endings(folder) == [".draft"]
        process.communicate(timeout=60)
        assert endings(folder) == [".json", ".txt"]


def test_process_without_cuda_leaves_drafts_alone(dead):
    folder, _ = dead
    finish(start(folder, "/bin/true"))
    assert endings(folder) == [".draft"]


def test_starts_at_the_same_time_make_one_report_of_it(dead):
    folder, _ = dead
    for process in [start(folder, PROGRAMS / "asks.linked", "a=1024") for _ in range(6)]:
        finish(process)
    assert endings(folder) == [".json", ".txt"]


def test_draft_of_a_told_line_brings_its_report_up_to_date(tmp_path, asks):
    folder = tmp_path / "shared"
    folder.mkdir()
    finish(start(folder, asks("asks"), FULL, "a=8192", "a=6144", "kill"))
    assert left_in(folder)[-1].json["request"]["bytes"] == 6144 * MIB
    finish(start(folder, PROGRAMS / "asks.linked", "a=1024"))
    assert endings(folder) == [".json", ".txt"]
    (report,) = left_in(folder)
    assert (report.json["request"]["bytes"], report.json["request"]["trials"]) == (6144 * MIB, 1)
    assert shown(report.path) == report.text


def test_what_only_looks_like_a_draft_is_left_alone(host, tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    strange = {"gpuoomshim.x.1.1.draft": b"", "gpuoomshim.x.2.1.draft": b"\0" * 70000,
               "gpuoomshim.x.999999999.1.draft": b"gpuoomshim" * 10000,
               "gpuoomshim.draft": b"mine", "gpuoomshim.x.y.z.draft": b"mine"}
    for name, content in strange.items():
        (folder / name).write_bytes(content)
    (folder / "gpuoomshim.x.3.1.draft").symlink_to("/etc/hostname")
    (folder / "gpuoomshim.x.4.1.draft").mkdir()
    process = start(folder, PROGRAMS / "asks.linked", "a=1024")
    stderr = finish(process)
    assert process.returncode == 0, stderr
    assert not list(folder.glob("*.json")) and not list(folder.glob("*.txt"))
    assert (folder / "gpuoomshim.draft").read_bytes() == b"mine"
    assert (folder / "gpuoomshim.x.3.1.draft").is_symlink()


# --- settings -------------------------------------------------------------------------------------

@pytest.mark.parametrize("end", ["exit", "kill"])
def test_without_reports_there_are_no_drafts_either(ends_alike, asks, end):
    run = ends_alike(asks("asks"), *SURVIVED, "b=4096", "a=6144", "photo=then", end,
                     env={"GPUOOMSHIM_REPORT": "off"})
    assert run.files == []


@pytest.mark.parametrize("form, ending", [("json", ".json"), ("text", ".txt")])
def test_draft_becomes_what_was_asked_for(tmp_path, asks, form, ending):
    folder = tmp_path / "shared"
    folder.mkdir()
    form = {"GPUOOMSHIM_REPORT": form}
    finish(start(folder, asks("libcupy_asks"), FULL, "a=6144", "kill", **form))
    assert endings(folder) == [".draft"]
    finish(start(folder, PROGRAMS / "asks.linked", "a=1024", **form))
    assert endings(folder) == [ending]


@pytest.mark.parametrize("end", ["exit", "kill"])
@pytest.mark.parametrize("most", ["1", "2"])
def test_last_failure_is_left_though_no_more_reports_may_be_written(ends_alike, asks, most, end):
    run = ends_alike(asks("asks"), *SURVIVED, "c=8192", "d=9216", "b=4096", "a=6144", end,
                     env={"GPUOOMSHIM_REPORT_MAX": most})
    assert (run.last.outcome, run.last.json["request"]["bytes"]) == ("failed", 6144 * MIB)
    assert len(run.reports) <= int(most)


def test_who_is_asked_for_what_is_survived_has_a_report_and_no_draft(same, asks):
    run = same(asks("libcupy_asks"), "hold=8192", "b=4096", "a=6144", "give", "a=6144",
               env={"GPUOOMSHIM_REPORT_ON": "all"})
    assert run.report.outcome == "recovered-by-caller"
    assert_whole(run)


def test_draft_is_private_to_its_owner(dead):
    folder, _ = dead
    (path,) = folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


def test_process_that_only_forks_leaves_the_parents_drafts_to_the_parent(tmp_path, asks):
    """A program that it starts with CUDA does not take them for those of the dead."""
    with waiting(tmp_path, asks("libcupy_asks"), FULL, "a=6144") as (process, folder):
        before = [path.name for path in folder.iterdir()]
        for _ in range(3):
            finish(start(folder, PROGRAMS / "forked.linked"))
        assert set(before) <= {path.name for path in folder.iterdir()}
        process.communicate(timeout=60)
        assert not list(folder.glob("*.draft"))


# --- what it takes to tell of it has run out ------------------------------------------------------

@pytest.mark.parametrize("room", ["room=0", "room=1024"])
def test_reports_say_who_holds_what_though_the_hosts_memory_has_run_out(ends_alike, program, room):
    """The first failure is told before that, or none is."""
    for before in [["a=6144"], []]:
        run = ends_alike(program("asks"), FULL, *before, room, "b=5120", "c=6000", "d=7000",
                         "return")
        assert len(run.reports) == len(before) + 3
        for report in run.reports:
            assert report.code == "exhausted-by-process" and "holds 12.00 GiB" in report.text
            assert "(no stack)" not in report.text
            assert shown(report.path) == report.text


@pytest.mark.parametrize("end", HARD)
def test_draft_says_the_same_though_the_hosts_memory_has_run_out(ends_alike, asks, end):
    run = ends_alike(asks("asks"), FULL, "room=0", "b=5120", "b=4096", end)
    assert (run.last.outcome, run.last.json["request"]["bytes"]) == ("failed", 4096 * MIB)
    assert run.last.code == "exhausted-by-process" and "holds 12.00 GiB" in run.last.text


@pytest.mark.parametrize("end", NORMAL + HARD)
def test_what_no_draft_can_keep_is_told_at_once(ends_alike, program, end):
    """A line survived before, and then no file can be opened any more."""
    run = ends_alike(program("asks"), *SURVIVED, "nofiles", "b=4096", "a=6144", end)
    assert "too many open files" in run.stderr
    assert "holds 12.00 GiB" in run.stderr.split("too many open files")[1]


def test_draft_has_the_name_of_its_report(ends_alike, asks):
    run = ends_alike(asks("asks"), *SURVIVED, "b=4096", "a=6144", "_exit")
    assert {name.rsplit(".", 1)[0] for name in run.files} == {run.report.path.stem}

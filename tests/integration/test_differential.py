"""The same calls with and without the library: same answers, and books that agree.

Generated sequences of calls from four threads (tests/differential): what the
driver answered must be the same byte for byte, and at each step the library's
live bytes must equal the simulator's own books and those of the host.
"""
import pathlib
import sys

import pytest

from hosts import BUILD, EMULATOR, LOAD_PATHS, ROOT

sys.path.insert(0, str(ROOT / "tests" / "differential"))

from generate import generate  # noqa: E402

HOSTS = BUILD / "tests" / "differential"
# At the end of a host whose threads live on, the leak detector takes what it reads in the
# thread-local memory of a library opened late for addresses.
NO_LEAK_DETECTOR = {"ASAN_OPTIONS": "detect_leaks=0"}
SIMULATOR = {"GPUSIM_DEVICES": "2", "GPUSIM_MEMORY": "2048", "DIFFERENTIAL_LIMIT": "50",
             **NO_LEAK_DETECTOR}
# A rescue is a difference, and wanted; here nothing is rescued.
NOT_RESCUED = {"GPUOOMSHIM_RETRY": "off"}


def first_difference(bare, shimmed):
    """The first line that differs, both ways; None if there is none.  A line begins with its seed."""
    ones, others = bare.splitlines(), shimmed.splitlines()
    for one, other in zip(ones, others):
        if one != other:
            return f"seed {one.split('.')[0]}\n  bare {one}\n  shim {other}"
    return None if len(ones) == len(others) else f"{len(ones)} and {len(others)} lines"


def compare(host, tmp_path, way, first, count, profile, env):
    path = tmp_path / "sequences"
    path.write_text(generate(first, count, 80, profile))
    without = "linked" if way == "inside" else way  # the library's books cannot be taken out
    bare = host(HOSTS / f"differential.{without}", path, preload=False, env=SIMULATOR)
    run = host(HOSTS / f"differential.{way}", path, env={**SIMULATOR, **env})
    assert bare.code == 0, bare.stderr[:2000]
    assert "#" in bare.stdout
    assert first_difference(bare.stdout, run.stdout) is None, \
        first_difference(bare.stdout, run.stdout)
    assert run.code == 0, run.stderr[:2000]
    return run


# Under sanitizers and in the emulator everything takes many times as long.
SLOW = LOAD_PATHS == ("inside",) or bool(EMULATOR)
COUNT = 5 if EMULATOR else 20 if SLOW else 100
WAYS = {"linked": [(1, "all")], "dlsym": [(1001, "all")], "runtime": [(4001, "runtime")],
        "resolver": [(2001, "all"), (3001, "full")], "inside": [(6001, "all"), (7001, "full")]}
WAYS_NOW = [*LOAD_PATHS] if SLOW else [*LOAD_PATHS, "runtime"]


@pytest.mark.parametrize("way, first, profile",
                         [(way, *case) for way in WAYS_NOW for case in WAYS[way]])
def test_sequences_have_the_same_answers_and_books(host, tmp_path, way, first, profile):
    compare(host, tmp_path, way, first, COUNT, profile, NOT_RESCUED)


@pytest.mark.parametrize("settings", [{}, {"GPUOOMSHIM_STACK": "off"},
                                      {"GPUOOMSHIM_DISABLE": "1"}])
def test_sequences_that_fit_have_the_same_answers_with_any_settings(host, tmp_path, settings):
    if "GPUOOMSHIM_DISABLE" in settings:  # no books
        path = tmp_path / "sequences"
        path.write_text(generate(5001, min(COUNT, 20), 80, "silicon"))
        command = (HOSTS / "differential.resolver", path)
        bare = host(*command, preload=False, env=SIMULATOR)
        assert host(*command, env={**SIMULATOR, **settings}).stdout == bare.stdout
        return
    run = compare(host, tmp_path, "resolver", 5001, min(COUNT, 60), "silicon", settings)
    assert {report.code for report in run.reports} <= {"in-capture"}  # they capture, too


@pytest.mark.skipif(bool(EMULATOR), reason="takes minutes in the emulator")
def test_kept_sequences_have_the_same_answers_on_one_device(host):
    command = (HOSTS / "differential.resolver", pathlib.Path(ROOT, "tests/differential/silicon.seq"),
               "without-free")
    limit = {"DIFFERENTIAL_LIMIT": "50"}
    bare, run = host(*command, preload=False, env=limit), host(*command, env=limit)
    assert first_difference(bare.stdout, run.stdout) is None
    assert (bare.code, run.code) == (0, 0), run.stderr[:2000]


def test_changed_answer_is_found_and_its_seed_named(host, tmp_path):
    """What would be missed if the comparison saw nothing."""
    path = tmp_path / "sequences"
    path.write_text(generate(7, 3))
    command = (HOSTS / "differential.resolver", path)
    good = host(*command, preload=False, env=SIMULATOR)
    bad = host(*command, preload=False, env={**SIMULATOR, "GPUSIM_FAIL": "cuMemAlloc_v2:999:2"})
    assert first_difference(good.stdout, bad.stdout).startswith("seed ")


def test_run_that_takes_too_long_says_in_which_step(host, tmp_path):
    path = tmp_path / "sequences"
    path.write_text(generate(7, 3))
    run = host(HOSTS / "differential.linked", path, preload=False,
               env={**SIMULATOR, "DIFFERENTIAL_LIMIT": "3", "GPUSIM_CALL_TIME": "50000"})
    assert run.code == 4
    assert "gave up at the limit: seed 7 step " in run.stderr


def test_record_that_is_missing_is_found(host, tmp_path):
    """A library that keeps no books has every record missing."""
    path = tmp_path / "sequences"
    path.write_text("sequence 1\n0 alloc 1 4096 0\n0 free_wrongly 1 0 0\n0 free 1 0 0\n")
    good = host(HOSTS / "differential.resolver", path, env=SIMULATOR)
    assert good.code == 0, good.stderr
    bad = host(HOSTS / "differential.resolver", path,
               env={**SIMULATOR, "GPUOOMSHIM_DISABLE": "1"})
    assert bad.code == 3
    assert "books differ: seed 1 step 1 alloc device 0" in bad.stderr

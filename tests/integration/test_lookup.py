"""Looking functions up is as without the library, and every way gives one that works."""
import ctypes.util
import os
import subprocess

import pytest

from hosts import PROGRAMS, SHIM


@pytest.mark.parametrize("question", ["next-twice", "next-open", "self", "abi", "resolver-abi",
                                      "per-thread", "missing"])
def test_answer_is_the_same_with_and_without(host, question):
    bare = host(PROGRAMS / "lookup", question, preload=False)
    run = host(PROGRAMS / "lookup", question)
    assert bare.code == 0, bare.stdout + bare.stderr
    assert run.code == 0, run.stdout + run.stderr
    assert run.stdout == bare.stdout
    assert run.files == []


def test_per_thread_allocation_is_tracked(host):
    run = host(PROGRAMS / "lookup", "per-thread")
    assert run.told("live_bytes") == [1 << 20, 0]


def test_foreign_function_of_the_same_name_is_left_alone(host):
    run = host(PROGRAMS / "lookup", "foreign", PROGRAMS / "libforeign_cu.so", sim=False)
    assert run.stdout == "outcome: foreign 4711\n"


def test_names_are_found_where_they_are_without_the_library(same):
    run = same(PROGRAMS / "lookup", "scopes", PROGRAMS / "liblookup_plugin.so")
    assert "driver of a plugin: default 0 0 program 0 0 own 1 1\n" in run.stdout
    assert "plugin sees 1\n" in run.stdout
    assert "driver for all: default 1 0 program 1 0 own 1 1\n" in run.stdout


def second_counts(run):
    counts = dict(line.split(": ")[1].split("=") for line in run.stderr.splitlines()
                  if line.startswith("second: "))
    return int(counts["lookups"]), int(counts["allocations"])


@pytest.mark.parametrize("order", ["shim first", "shim last"])
def test_second_preload_library_and_ours_both_see_calls(host, order):
    libraries = [str(SHIM), str(PROGRAMS / "libsecond_preload.so")]
    if order == "shim last":
        libraries.reverse()
    run = host(PROGRAMS / "refused_free.dlsym", env={"LD_PRELOAD": ":".join(libraries)})
    bare = host(PROGRAMS / "refused_free.dlsym", preload=False)
    assert run.code == 0, run.stdout + run.stderr
    assert run.stdout == bare.stdout
    lookups, allocations = second_counts(run)
    assert lookups > 0 and allocations == 1
    assert run.told("live_bytes")[-1] == 0


def jemalloc():
    name = ctypes.util.find_library("jemalloc")
    return name


@pytest.mark.skipif(jemalloc() is None, reason="jemalloc is not installed")
@pytest.mark.parametrize("order", ["shim first", "shim last"])
def test_jemalloc_beside_it(host, program, order):
    libraries = [str(SHIM), jemalloc()]
    if order == "shim last":
        libraries.reverse()
    run = host(program("scenario_4"), env={"LD_PRELOAD": " ".join(libraries)})
    assert run.code == 0, run.stdout + run.stderr
    assert run.report.code == "exhausted-by-process"


def test_wrong_preload_path_is_the_loaders_message_and_nothing_else():
    env = dict(os.environ, LD_PRELOAD="/nonexistent/libgpuoomshim.so")
    done = subprocess.run(["/bin/echo", "hi"], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "hi\n"
    assert "ld.so" in done.stderr

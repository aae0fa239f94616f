"""What real CUDA runtimes look up, and what they are handed.

A real libcudart of each major version, shared and static, over a driver that
has every row of entrypoints.def and no device (tests/programs/cudart_driver.c):
it does all its look-ups before it learns that.  A recorder, preloaded before
the library, writes down each answer; without the library, the same questions
and the driver's own answers.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from hosts import BUILD, PROGRAMS, ROOT, SHIM

TOOLKIT = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
DRIVER = BUILD / "tests" / "cudart-driver"
NUMBERED = BUILD / "tests" / "cudart-numbered"
RECORDER = PROGRAMS / "libcudart_recorder.so"
WHEELS = BUILD / "cudart-wheels"
PACKAGES = {"11": "nvidia-cuda-runtime-cu11==11.8.89", "12": "nvidia-cuda-runtime-cu12"}
FIELDS = ["caller", "way", "name", "version", "flags", "result", "status", "module", "symbol",
          "pointer"]


def toolkit_library(name):
    for folder in ("lib64", "lib", "targets/x86_64-linux/lib"):
        if (TOOLKIT / folder / name).exists():
            return TOOLKIT / folder / name
    return pytest.skip(f"no {name} in {TOOLKIT}")


def wheel_library(major):
    """A libcudart from PyPI, fetched once."""
    folder = WHEELS / major
    if not list(folder.glob("nvidia/*/lib/libcudart.so.*")):
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps",
                               "--target", folder, PACKAGES[major]], capture_output=True,
                              text=True, timeout=300, check=False)
        if done.returncode != 0:
            return pytest.skip(f"pip gave no {PACKAGES[major]}: {done.stderr.strip()[-200:]}")
    (library,) = folder.glob("nvidia/*/lib/libcudart.so.*")
    return library


def cudart(which):
    return toolkit_library("libcudart.so.13") if which == "13" else wheel_library(which)


@pytest.fixture
def build(tmp_path):
    """Compile tests/programs/cudart_user.c, as a program or a library, with a given libcudart."""
    compiler = shutil.which("cc")
    headers = os.environ.get("CUDA_INCLUDE") or str(TOOLKIT / "include")
    if compiler is None or not pathlib.Path(headers.split()[0], "cuda_runtime_api.h").exists():
        pytest.skip("no compiler or no CUDA headers")

    def run(output, library, *flags):
        done = subprocess.run([compiler, *(f"-I{folder}" for folder in headers.split()), *flags,
                               "-o", tmp_path / output, ROOT / "tests/programs/cudart_user.c",
                               library, "-Wl,--allow-shlib-undefined", "-ldl", "-lpthread", "-lrt"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return tmp_path / output

    return run


@pytest.fixture
def record(host, tmp_path):
    """Run a host with the recorder: what it printed, and each look-up as a dictionary."""

    def run(preload, libraries, *command):
        path = tmp_path / f"record-{'shim' if preload else 'bare'}-{len(list(tmp_path.iterdir()))}"
        # The headers' runtime may differ from the one that is linked; nobody here minds.
        folders = [str(DRIVER), *(str(library.parent) for library in libraries)]
        env = {"CUDART_RECORD": str(path), "LD_LIBRARY_PATH": ":".join(folders),
               "LD_PRELOAD": ":".join([str(RECORDER)] + ([str(SHIM)] if preload else []))}
        done = host(*command, env=env)
        assert done.code == 0, done.stdout + done.stderr
        rows = [dict(zip(FIELDS, line.split("\t"))) for line in path.read_text().splitlines()]
        return done, rows

    return run


@pytest.fixture(scope="session")
def hooked():
    """Functions that the library has of its own."""
    done = subprocess.run(["nm", "-D", "--defined-only", SHIM], capture_output=True, text=True,
                          check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


def questions(rows):
    return [[row[field] for field in FIELDS[:7]] for row in rows]


def check(bare, shimmed, hooked):
    """Each hooked function is ours, everything else is the driver's, and nothing else changed."""
    assert questions(shimmed) == questions(bare)
    for ours, real in zip(shimmed, bare):
        assert ours["symbol"] == real["symbol"], (ours, real)
        expected = "libgpuoomshim.so" if real["symbol"] in hooked else real["module"]
        assert ours["module"] == expected, ours


def check_streams(bare, shimmed):
    """Where the driver has two functions under one name, so have we."""
    answers = {}
    for real, ours in zip(bare, shimmed):
        if real["way"] != "dlsym" and real["pointer"] != "(nil)":
            answers.setdefault((real["name"], real["version"]), []).append((real, ours))
    twins = 0
    for pairs in answers.values():
        for one in pairs:
            for other in pairs:
                assert (one[0]["symbol"] == other[0]["symbol"]) == \
                    (one[1]["pointer"] == other[1]["pointer"])
                twins += one[0]["symbol"] != other[0]["symbol"]
    return twins


def check_first_question(shimmed):
    """Empty name, version 0, and no place for a status: the runtime's way to say hello."""
    strange = [row for row in shimmed if row["name"] == ""]
    for row in strange:
        assert (row["version"], row["pointer"]) == ("0", "(nil)")
    return len(strange)


@pytest.mark.parametrize("which", ["13", "12", "11"])
def test_shared_runtime_is_handed_our_functions(build, record, hooked, which):
    library = cudart(which)
    program = build("program", library, "-DPROGRAM")
    plain, bare = record(False, [library], program)
    run, shimmed = record(True, [library], program)
    assert run.stdout == plain.stdout
    check(bare, shimmed, hooked)
    assert {row["caller"] for row in shimmed} == {library.name}
    asked = {row["name"] for row in shimmed}
    assert {"cuInit", "cuMemAlloc", "cuMemFree", "cuMemAllocAsync", "cuLaunchKernel"} <= asked
    assert len([row for row in shimmed if row["module"] == "libgpuoomshim.so"]) > 40
    assert check_streams(bare, shimmed) > 0
    if which == "13":
        assert check_first_question(shimmed) == 1


def test_static_runtime_is_handed_our_functions(build, record, hooked):
    library = toolkit_library("libcudart_static.a")
    program = build("static", library, "-DPROGRAM")
    plain, bare = record(False, [], program)
    run, shimmed = record(True, [], program)
    assert run.stdout == plain.stdout
    check(bare, shimmed, hooked)
    assert {row["caller"] for row in shimmed} == {"static"}
    assert check_streams(bare, shimmed) > 0
    assert check_first_question(shimmed) == 1


def test_static_and_shared_runtime_ask_the_same(build, record):
    shared, static = cudart("13"), toolkit_library("libcudart_static.a")
    _, one = record(True, [shared], build("program", shared, "-DPROGRAM"))
    _, other = record(True, [], build("static", static, "-DPROGRAM"))
    assert [row[1:] for row in questions(one)] == [row[1:] for row in questions(other)]


@pytest.mark.parametrize("acting, other", [("12", "13"), ("13", "12"), ("11", "13"), ("13", "11"),
                                           ("11", "12")])
def test_two_runtimes_in_one_process_are_each_reached_by_their_own_caller(build, record, acting,
                                                                          other):
    """cudaMalloc is one symbol in a process; whose runtime answers depends on who calls."""
    libraries = [cudart(acting), cudart(other)]
    users = [build(f"libuser-{name}.so", library, "-shared", "-fPIC")
             for name, library in zip((acting, other), libraries)]
    plain, bare = record(False, libraries, PROGRAMS / "cudart_two", *users)
    run, shimmed = record(True, libraries, PROGRAMS / "cudart_two", *users)
    if acting != "11":  # which, without a device, does not say
        assert f"version {acting}\n" in run.stdout
    assert run.stdout == plain.stdout
    assert {row["caller"] for row in shimmed} == {row["caller"] for row in bare} == \
        {libraries[0].name}


REACHES = """
import ctypes, sys
user, *runtimes = sys.argv[1:]
kept = [ctypes.CDLL(path) for path in runtimes]
print("outcome: reached", ctypes.CDLL(user).number_reached())
"""


@pytest.mark.parametrize("user", ["12", "13"])
@pytest.mark.parametrize("links", [
    {"libcudart.so": "12"}, {"libcudart.so": "13"},
    {"libcudart.so.13.0.96": "13", "libcudart.so.12.4.127": "12"},
    {"libcudart.so.12.4.127": "12", "libcudart.so.13.0.96": "13"}])
def test_runtime_loaded_under_another_name_is_reached_by_those_linked_with_it_only(
        same, tmp_path, user, links):
    for link, number in links.items():
        (tmp_path / link).symlink_to(NUMBERED / f"libcudart.so.{number}")
    run = same(sys.executable, "-c", REACHES, NUMBERED / f"libuser_of_{user}.so",
               *(tmp_path / link for link in links), sim=False)
    assert run.stdout == f"outcome: reached {user}\n"


def test_recorder_alone_sees_the_drivers_functions(build, record):
    """What the tests above would miss if the recorder saw nothing."""
    library = cudart("13")
    _, bare = record(False, [library], build("program", library, "-DPROGRAM"))
    assert len(bare) > 400
    assert {row["module"] for row in bare} == {"libcuda.so.1", ""}

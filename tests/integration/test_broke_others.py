"""What has broken other shims, each as a test of its kind.

Some kinds have their tests elsewhere: RTLD_NEXT and self look-up, old ABIs of
cuMemAlloc and of the resolver, a second preload library and jemalloc in
test_lookup.py; needs of the library in test_harmless.py and check-exports; the
stale last error of a retry in test_scenarios.py (runtime_recovered).
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from hosts import BUILD, LOAD_PATHS, MIB, PROGRAMS, SHIM

SEQUENCES = BUILD / "tests" / "differential"
TWO_DEVICES = {"GPUSIM_DEVICES": "2", "GPUSIM_MEMORY": "2048"}


# --- look-ups


def test_names_like_the_drivers_stay_with_their_libraries(same):
    """cuDNN looks its own name up in another library: answered with its own, it calls itself."""
    run = same(PROGRAMS / "broke_names", PROGRAMS / "libbroke_cudnn.so",
               PROGRAMS / "libbroke_cudnn_ops.so")
    assert run.stdout == "outcome: created 8000\noutcome: next 0\n"
    assert run.files == []


def test_each_version_of_context_creation_gets_its_own_arguments(same):
    run = same(PROGRAMS / "broke_context_abi")
    assert run.stdout.count("result 0 flags arrived 1") >= 2


# --- where memory is, and how it is freed


def test_physical_memory_without_context_or_device(same, program):
    run = same(program("broke_places"))
    assert "outcome: device 0 0\n" in run.stdout
    # Two lines for each attempt: on the device's books while there, if on a device; else never.
    assert run.told("live_bytes")[0:2] == [2 * MIB, 0]
    assert set(run.told("live_bytes")[2:]) == {0}
    assert run.files == []


CROSSED = {
    "ordered memory freed at once": (
        "resolver", ["0 stream_create 2 0 0", "0 alloc_async 1 1048576 2", "0 free 1 0 0"],
        {3: "0 #1"}),
    "ordered memory freed by cudaFree": (
        "runtime", ["0 stream_create 2 0 0", "0 rt_alloc_async 1 1048576 2", "0 rt_free 1 0 0"],
        {3: "0 #1 peek 0 last 0"}),
    "device memory freed in stream order": (
        "resolver", ["0 stream_create 2 0 0", "0 alloc 1 4096 0", "0 free_async 1 2 0"],
        {3: "0 #1"}),
    "managed memory refused in stream order": (
        "resolver", ["0 managed 1 4096 0", "0 free_async 1 0 0", "0 free 1 0 0"],
        {2: "801", 3: "0 #1"}),
    "graph memory freed at once": (
        "resolver", ["0 stream_create 2 0 0", "0 capture_begin 2 0 0", "0 alloc_async 1 4096 2",
                     "0 capture_end 0 0 0", "0 graph_instantiate 0 0 0", "0 graph_launch 0 2 0",
                     "0 stream_sync 2 0 0", "0 free 1 0 0"],
        {6: "0", 8: "0 #1"}),
    "graph memory freed in stream order": (
        "resolver", ["0 stream_create 2 0 0", "0 stream_create 3 0 0", "0 capture_begin 2 0 0",
                     "0 alloc_async 1 4096 2", "0 capture_end 0 0 0", "0 graph_instantiate 0 0 0",
                     "0 graph_launch 0 2 0", "0 free_async 1 3 0"],
        {7: "0", 8: "0 #1"}),
    "freed on another device's stream": (
        "resolver", ["0 stream_create 2 0 0", "0 alloc_async 1 1048576 2", "1 context_set 1 0 0",
                     "1 stream_create 3 0 0", "1 alloc_async 2 4096 3", "1 free_async 1 3 0",
                     "0 free_async 2 2 0"],
        {6: "0 #1", 7: "0 #2"}),
    "taken from another device's pool": (
        "resolver", ["0 stream_create 2 0 0", "0 alloc_from 1 4096 8", "0 free_async 1 2 0"],
        {2: "0 #1", 3: "0 #1"}),
    "alive in a pool that is destroyed": (
        "resolver", ["0 stream_create 2 0 0", "0 pool_create 2 0 0", "0 alloc_from 1 4096 14",
                     "0 pool_destroy 2 0 0", "0 free_async 1 2 0"],
        {4: "0 0", 5: "0 #1"}),
    "gone with its context": (
        "resolver", ["0 context_create 2 1 0", "0 context_set 2 0 0", "0 alloc 1 4096 0",
                     "0 host 2 4096 0", "0 context_set 0 0 0", "0 context_destroy 2 0 0"],
        {6: "0"}),
}


@pytest.mark.parametrize("what", CROSSED)
def test_memory_freed_another_way_leaves_the_right_books(host, tmp_path, what):
    way, steps, expected = CROSSED[what]
    path = tmp_path / "sequence"
    path.write_text("\n".join(["sequence 1", *steps, ""]))
    command = (SEQUENCES / f"differential.{way}", path)
    bare = host(*command, preload=False, env=TWO_DEVICES)
    run = host(*command, env=TWO_DEVICES)
    for step, answer in expected.items():
        assert bare.stdout.splitlines()[step - 1].split(":")[1].split("|")[0].strip() == answer
    assert run.stdout == bare.stdout
    assert (bare.code, run.code) == (0, 0), run.stderr
    assert run.files == []


def test_importer_does_not_own_the_bytes(host, program, tmp_path):
    """Whatever it calls to be rid of them."""
    runs = [host(program("broke_import"), preload=preload,
                 env={"GPUSIM_STATE": str(tmp_path / f"state-{preload}")})
            for preload in (False, True)]
    assert [run.code for run in runs] == [0, 0], runs[1].stdout + runs[1].stderr
    assert runs[0].stdout == runs[1].stdout
    assert "outcome: opening 0\n" in runs[1].stdout
    assert set(runs[1].told("live_bytes")) == {0}


def test_frees_after_the_driver_are_neither_leaks_nor_errors(same, program):
    run = same(program("broke_exit"))
    assert run.stdout.splitlines() == ["outcome: late free 4",
                                       "outcome: late free in stream order 4",
                                       "outcome: late allocation 4"]
    assert run.lines_of_shim == [] and run.files == []


# --- when something of ours fails


def test_books_that_cannot_be_kept_cost_the_host_nothing(same, program):
    """No address space for our records: the allocations are the host's all the same."""
    run = same(program("broke_books"))
    assert "outcome: made 32000\n" in run.stdout
    alive, freed = run.told("live_count")
    assert 0 < alive < 32000 + 16, "the limit was not felt: nothing is proven"
    assert freed == 0
    assert run.files == []


@pytest.mark.parametrize("other", [1, 201, 700, 719, 999])
def test_out_of_memory_is_error_2_whatever_the_retry_met(host, other):
    """Frameworks know 2, and no other; what a retry meets the next call will meet, too."""
    env = {"GPUSIM_FAIL": f"cuMemAlloc_v2:{other}:2"}
    run = host(PROGRAMS / "scenario_3.dlsym", env=env)
    bare = host(PROGRAMS / "scenario_3.dlsym", preload=False)
    first = "outcome: allocation behind a pending free 2"
    assert bare.stdout.splitlines()[0] == first
    assert run.stdout.splitlines()[0] == first
    assert other in [step.get("cuda_result") for step in run.report.json["recovery"]]


# --- other libraries, other processes


def imports():
    done = subprocess.run(["nm", "-D", "--undefined-only", SHIM], capture_output=True, text=True,
                          check=True)
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}


def test_hooks_cannot_call_what_may_not_be_called_in_hooks():
    """What is not imported is not called: the environment, the host's heap, stdio, the end."""
    forbidden = re.compile(
        r"secure_getenv|getenv|setenv|malloc|calloc|realloc|free|posix_memalign|aligned_alloc"
        r"|v?(f|s|sn|as|d)?printf(_chk)?|__.*printf_chk|f(open|close|write|puts|flush)|puts|putchar"
        r"|qsort|exit|_exit|_Exit|abort|__assert_fail|raise|pthread_(create|once|mutex_lock)"
        r"|dladdr|dlclose|backtrace|_Unwind_.*|cu[A-Z].*|cuda[A-Z].*|nvml.*")
    assert sorted(name for name in imports() if forbidden.fullmatch(name)) == []
    assert "dl_iterate_phdr" in imports()  # nm did see something


def tool(*names):
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    return pytest.skip(f"no {names[0]} here")


@pytest.mark.parametrize("command", [["git", "--version"], ["/usr/local/cuda/bin/ptxas", "--version"],
                                     ["perl", "-e", "print 1 + 1"], ["ls", "/"],
                                     ["make", "--version"]])
def test_tools_that_inherit_the_preload_do_not_notice(host, command):
    command = [tool(command[0]), *command[1:]]
    bare, run = host(*command, preload=False), host(*command)
    assert (run.code, run.stdout, run.stderr) == (bare.code, bare.stdout, bare.stderr)
    assert bare.code == 0 and run.files == []


def sanitizer(name):
    compiler = tool("gcc", "cc")
    done = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True,
                          check=True)
    path = done.stdout.strip()
    return path if os.path.isabs(path) else pytest.skip(f"no {name} here")


@pytest.mark.parametrize("order", ["shim first", "shim last"])
@pytest.mark.parametrize("name", ["libasan.so", "libtsan.so", "libubsan.so"])
def test_sanitizer_beside_it(host, name, order):
    """It replaces strcmp, asks dlsym for the real one, and may not be made to use it meanwhile."""
    libraries = [str(SHIM), sanitizer(name)]
    if order == "shim last":
        libraries.reverse()
    options = {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}
    alone = {**options, "LD_PRELOAD": sanitizer(name)}
    bare = host(PROGRAMS / "alloc_kinds.dlsym", env=alone)
    if bare.code != 0:
        pytest.skip(f"{name} does not work here by itself")
    run = host(PROGRAMS / "alloc_kinds.dlsym", env={**options, "LD_PRELOAD": ":".join(libraries)})
    assert (run.code, run.stdout) == (bare.code, bare.stdout), run.stderr
    alive, freed = run.told("live_bytes")
    assert alive > 0 and freed == 0


def test_thread_in_a_hook_does_not_need_the_loaders_lock(same, program):
    """A constructor, under that lock, waits for it: for a new stack, and for a report."""
    run = same(program("broke_loader"), PROGRAMS / "libbroke_constructor.so", timeout=100)
    results = [int(line.split()[-1]) for line in run.stdout.splitlines()]
    assert results == [0, 2, 0]
    assert run.told("live_count") == [2]
    assert run.report.code == "request-too-large"


def test_every_host_of_this_file_is_built_each_way():
    """Else a name that is misspelt in the Makefile would skip nothing and prove nothing."""
    for name in ("books", "exit", "import", "loader", "places"):
        for path in LOAD_PATHS:
            assert pathlib.Path(PROGRAMS, f"broke_{name}.{path}").exists()

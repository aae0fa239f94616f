"""Stacks that are hard to walk, tags, and sampled stacks."""
import collections
import json
import pathlib
import platform
import re
import subprocess
import sys

import pytest
import pythons
from hosts import BUILD, PROGRAMS

HERE = pathlib.Path(__file__).resolve().parents[1] / "programs"
UNWINDERS = ("libunwind", "libgcc")
GIB = 1 << 30


@pytest.fixture(params=UNWINDERS)
def unwinder(request, tmp_path_factory):
    """Environment under which that unwinder is used."""
    if request.param == "libunwind":
        return {}
    return {"LD_LIBRARY_PATH": f"{without_libunwind(tmp_path_factory)}:{BUILD / 'sim'}"}


def without_libunwind(tmp_path_factory):
    """A folder in which libunwind.so.8 is a file that cannot be loaded."""
    folder = tmp_path_factory.getbasetemp() / "no-libunwind"
    folder.mkdir(exist_ok=True)
    (folder / "libunwind.so.8").write_text("not a library")
    return folder


def stack_losses(report):
    return {loss["what"]: loss["count"] for loss in report.json["tracking"]["losses"]}


def version_of(text):
    return tuple(int(part) for part in text.split(".")[:2])


def told_one(run, name):
    (value,) = run.told(name)
    return value


# --- strange stacks ---------------------------------------------------------------


@pytest.mark.parametrize("part", ["jit", "frame-pointer", "return-address", "saved-frame-pointer",
                                  "compiled-return-address"])
def test_generated_code_and_damaged_stacks_cost_at_most_the_stack(same, unwinder, part):
    if platform.machine() != "x86_64":
        pytest.skip("the generated code is for x86-64")
    run = same(PROGRAMS / "stack_jit.linked", part, env=unwinder)
    assert told_one(run, "live_count") == 0


def test_small_stacks_before_guard_pages_suffice(same, unwinder):
    run = same(PROGRAMS / "stack_guard.linked", env=unwinder)
    assert told_one(run, "live_count") == 0


def test_signal_handler_may_allocate(same, unwinder):
    same(PROGRAMS / "stack_signal.linked", env={"GPUSIM_ZERO_COST": "1", **unwinder})


def test_thousands_of_threads_free_in_their_destructors(same, unwinder):
    run = same(PROGRAMS / "stack_threads.linked", env=unwinder)
    assert told_one(run, "live_count") == 0


def test_constructor_allocates_while_another_thread_does(same, unwinder):
    library = PROGRAMS / "libstack_constructor.so"
    run = same(PROGRAMS / "stack_dlopen.linked", library, env=unwinder)
    assert run.stdout.count("outcome: constructed\n") == 20
    assert told_one(run, "live_count") == 0


def test_library_at_the_place_of_one_that_was_closed_is_named(same, unwinder, tmp_path):
    libraries = [PROGRAMS / "libstack_first.so", PROGRAMS / "libstack_second.so"]
    run = same(PROGRAMS / "stack_reopened.linked", *libraries, tmp_path / "held", env=unwinder)
    assert told_one(run, "live_count") == 12
    sites = json.loads((tmp_path / "held.json").read_text())["sites"]
    held = {site["stack"]["native"][0]["library"]: site["live_bytes"] for site in sites}
    assert held == {"libstack_first.so": 12 << 20, "libstack_second.so": 24 << 20}


def test_new_stack_does_not_wait_for_the_loader(same, tmp_path_factory):
    if platform.libc_ver()[0] != "glibc" or version_of(platform.libc_ver()[1]) < (2, 35):
        pytest.skip("the unwinder itself asks the loader")
    env = {"LD_LIBRARY_PATH": f"{without_libunwind(tmp_path_factory)}:{BUILD / 'sim'}"}
    run = same(PROGRAMS / "stack_loader_lock.linked", env=env)
    assert "outcome: the thread went on\n" in run.stdout


def test_exceptions_are_caught_as_without_the_library(same, unwinder):
    run = same(PROGRAMS / "stack_exceptions", env=unwinder)
    assert "outcome: caught 200, destroyed 2100\n" in run.stdout


# --- interpreters -----------------------------------------------------------------


def home_of(library):
    home = pathlib.Path(library).parents[1]
    return {"PYTHONHOME": str(home)} if (home / "bin" / "python3").exists() else {}


def allocations_by_python(report):
    counts = {}
    for site in report["sites"]:
        functions = tuple(frame["function"] for frame in site["stack"].get("python", []))
        counts[functions] = counts.get(functions, 0) + site["live_count"]
    return counts


def is_known_python(library):
    return int(re.search(r"libpython3\.(\d+)", library).group(1)) >= 8


@pytest.mark.parametrize("scope, fate, opened", [
    ("global", "kept", "first"), ("local", "closed", "first"), ("local", "kept", "late"),
])
@pytest.mark.parametrize("library", pythons.shared() or [None])
def test_interpreter_inside_a_program_comes_and_goes(same, library, scope, fate, opened, tmp_path):
    if library is None:
        pytest.skip("no shared libpython here")
    end = tmp_path / "end"
    run = same(*pythons.starter(library), PROGRAMS / "stack_embedded.linked", library, scope, fate,
               opened, end, env=home_of(library))
    assert run.stdout.count("outcome: program gave 0\n") == 2
    if is_known_python(library):
        report = json.loads((tmp_path / "end.json").read_text())
        assert allocations_by_python(report) == {("inner", "outer", "<module>"): 200}


# What is run last while an interpreter starts; others get to run during it.
SLOW_START = """
import sys, time, types
sys.modules["keeper"] = types.ModuleType("keeper")  # that has nothing yet to be called
time.sleep(0.3)
"""


@pytest.mark.parametrize("library", pythons.shared() or [None])
def test_failures_while_an_interpreter_starts_neither_disturb_nor_wait_for_it(
        host, tmp_path, library):
    if library is None:
        pytest.skip("no shared libpython here")
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "sitecustomize.py").write_text(SLOW_START)
    command = (*pythons.starter(library), PROGRAMS / "starting_python.linked", library)
    env = {**home_of(library), "PYTHONPATH": str(tmp_path / "start")}
    shimmed = {"GPUOOMSHIM_FLUSH": "keeper:free", "GPUOOMSHIM_FLUSH_BUDGET": "300ms",
               "GPUOOMSHIM_REPORT_MAX": "1000"}
    bare = host(*command, preload=False, env=env)
    run = host(*command, env={**env, **shimmed}, timeout=30)
    assert run.stdout.splitlines()[:-1] == bare.stdout.splitlines()[:-1], run.stderr
    assert bare.stdout.endswith("outcome: when it has started 2\n")
    # Too old to be asked; to say which thread is the main one.
    serves = not re.search(r"libpython3\.[67]", str(library))
    assert run.stdout.endswith(f"outcome: when it has started {0 if serves else 2}\n")
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("python_path", pythons.of_versions(["3.6", "3.7", *pythons.KNOWN]))
def test_sub_interpreters_are_survived(host, python_path):
    program = HERE / "stack_subinterpreters.py"
    bare = host(python_path, program, preload=False)
    if bare.code != 0:
        pytest.skip("this interpreter cannot run it without the library either")
    run = host(python_path, program)
    assert run.code == 0, run.stderr
    assert run.stdout == bare.stdout


def stub_python(host, version=None, library="libstub_python.so"):
    env = {"STUB_PYTHON": version} if version else {}
    return host(PROGRAMS / "stack_stub_python.linked", PROGRAMS / library, env=env)


# The free-threaded one runs a copy of the bytecode, so only the function is known.
@pytest.mark.parametrize("library, line", [("libstub_python.so", 45),
                                           ("libstub_free_threaded.so", 40)])
def test_frames_laid_out_as_cpython_3_14_publishes_them_are_read(host, library, line):
    report = stub_python(host, library=library).report
    (site,) = [site for site in report.json["sites"] if site["live_count"] == 3]
    frames = [(frame["file"], frame["function"], frame["line"]) for frame in site["stack"]["python"]]
    assert frames == [("/model/train.py", "Model.forward", line),
                      ("/model/train.py", "<module>", 100)]
    assert (f"train.py:{line} Model.forward <- train.py:100 <module>"
            in " ".join(report.text.split()))
    assert not any("Python frames" in line for line in report.json["incomplete"])


@pytest.mark.parametrize("version", ["3.14.2 free-threading build (main)",
                                     "3.13.1 experimental free-threading build (main)"])
def test_free_threaded_build_that_says_nothing_has_no_python_stacks(host, version):
    why = "this free-threaded build of CPython does not describe itself"
    report = stub_python(host, version).report
    assert all(not site["stack"]["python"] for site in report.json["sites"] if site["stack"])
    assert any(why in line for line in report.json["incomplete"])
    assert why in " ".join(report.text.split())


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.15"])
def test_unknown_version_has_no_python_stacks_and_the_report_says_so(host, version):
    found = pythons.of_version(version) or pytest.skip(f"no CPython {version} here")
    report = host(found, HERE / "stack_tags.py").report
    why = f"CPython {version} is not known"
    assert all(not site["stack"]["python"] for site in report.json["sites"] if site["stack"])
    assert report.text.count(why) == 1


@pytest.fixture(scope="session")
def python_with(tmp_path_factory):
    """python_with(package): an interpreter that has it, installed from PyPI if need be."""

    def find(package):
        for python_path in (sys.executable, str(BUILD / "venv" / "bin" / "python3")):
            if has(python_path, package):
                return python_path
        folder = tmp_path_factory.mktemp(package)
        made = str(folder / "bin" / "python3")
        commands = ([sys.executable, "-m", "venv", str(folder)],
                    [made, "-m", "pip", "install", "-q", "--only-binary", ":all:", package])
        if any(failed(command) for command in commands):
            pytest.skip(f"{package} cannot be installed here")
        return made

    return find


def failed(command):
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=180).returncode != 0
    except (OSError, subprocess.TimeoutExpired):
        return True


def has(python_path, package):
    return not failed([python_path, "-c", f"import {package}"])


@pytest.mark.parametrize("package", ["greenlet", "numba"])
def test_other_peoples_stacks_below_python(same, python_with, unwinder, package):
    same(python_with(package), HERE / f"stack_{package}.py", env=unwinder, timeout=120)


@pytest.mark.parametrize("python_path", pythons.of_versions(["3.8", "3.12", "3.14"]))
def test_lines_of_the_program_are_kept_of_a_deep_stack(host, python_path):
    report = host(python_path, HERE / "stack_deep.py").report
    counts = collections.Counter()
    for site in report.json["sites"]:
        frames = site["stack"]["python"]
        counts[frames[-2]["function"]] += site["live_count"]
        assert len(frames) == 40
        assert [i for i, frame in enumerate(frames) if frame["file"] == "<not kept>"] == [31]
    assert counts == {"encode": 200, "decode": 200}
    assert ("stack_deep.py:29 <module> (layers: core.py:3) short by"
            in " ".join(report.text.split()))
    assert "      ... and 28 more\n      /venv/site-packages/layers/core.py:6  step\n" in report.text
    shown = subprocess.run([str(BUILD / "gpuoomshim"), "show", "--all", str(report.path)],
                           stdout=subprocess.PIPE, check=True).stdout.decode()
    assert "      ... frames between that were not kept\n" in shown


# --- recognised stacks ------------------------------------------------------------


def test_a_million_recognised_stacks_are_what_unwinding_finds(host, unwinder):
    run = host(PROGRAMS / "stack_million.linked", "1000000",
               env={"GPUSIM_ZERO_COST": "1", "GPUOOMSHIM_STACK_VERIFY": "1", **unwinder},
               timeout=300)
    assert run.code == 0, run.stderr
    assert run.report.json["tracking"]["allocated_count"] >= 1_000_000
    assert stack_losses(run.report).get("stacks not captured", 0) == 0
    assert "taken for another" not in run.stderr


# --- tags -------------------------------------------------------------------------


def tagged(report):
    return {(site["stack"] or {}).get("tag"): site for site in report.json["sites"]
            if site["kind"] == "device"}


@pytest.mark.parametrize("stack", ["both", "off"])
def test_tags_tell_allocations_of_one_line_apart(host, stack):
    run = host(PROGRAMS / "stack_tags.linked", env={"GPUOOMSHIM_STACK": stack})
    sites = tagged(run.report)
    assert {tag: site["live_count"] for tag, site in sites.items()} == {
        "kv-cache": 2, "weights": 1, None: 1, "\x1b[31mred": 1}
    assert "[kv-cache]" in run.report.text
    assert "\x1b" not in run.report.text


def test_site_lines_name_the_readers_own_lines(host, python):
    run = host(python, HERE / "stack_tags.py")
    screen = " ".join(run.report.text.split("\n\nVERDICT")[0].split())
    assert run.stdout == "outcome: 2\n"
    assert "asked by python: stack_tags.py:11 allocate <- stack_tags.py:33 <module>" in screen
    assert "1 allocation stack_tags.py:11 allocate <- stack_tags.py:15 weights" in screen
    assert "3 allocations stack_tags.py:11 allocate [kv-cache]" in screen
    assert run.report.json["request"]["requester"].startswith(("python", "libpython"))


# --- sampled stacks ---------------------------------------------------------------


def test_sampled_stacks_estimate_their_sites_and_leave_totals_exact(host):
    run = host(PROGRAMS / "stack_tags.linked", env={"GPUOOMSHIM_STACK_SAMPLE": "256K"})
    report = run.report
    pieces = [site for site in report.json["sites"] if site["kind"] == "pool"]
    whole = 12000 // 3 * (2 * 16384 + 65536)
    assert sum(site["live_bytes"] for site in pieces) == whole
    assert sum(site["live_count"] for site in pieces) == 12000
    assert all(site["estimated"] for site in pieces)
    estimated = sorted((site["estimated_live_bytes"] for site in pieces), reverse=True)
    # About 900 of 4000 and 500 of 8000 are taken: 20 % are more than four deviations.
    assert estimated[0] == pytest.approx(4000 * 65536, rel=0.2)
    assert estimated[1] == pytest.approx(8000 * 16384, rel=0.25)
    (without,) = [site for site in pieces if site["site"] == 0]
    assert without["estimated_live_bytes"] == 0 and without["live_count"] > 9000
    assert report.json["tracking"]["stack_sample_bytes"] == 262144
    assert "about " in report.text


def test_without_sampling_nothing_is_estimated(host):
    report = host(PROGRAMS / "stack_tags.linked").report
    assert not any(site["estimated"] for site in report.json["sites"])
    assert report.json["tracking"]["stack_sample_bytes"] == 0


def test_shown_report_equals_the_written_one(host, tmp_path):
    run = host(PROGRAMS / "stack_tags.linked", env={"GPUOOMSHIM_STACK_SAMPLE": "256K"})
    shown = subprocess.run([str(BUILD / "gpuoomshim"), "show", str(run.report.path)], text=True,
                           capture_output=True, check=True)
    for line in ("[kv-cache]", "allocations with a stack", "allocations without a stack"):
        assert line in shown.stdout

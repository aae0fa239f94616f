"""Processes without CUDA, and surroundings that are not as one would wish."""

import pathlib
import resource
import shutil
import subprocess

import pytest

from hosts import PROGRAMS, ROOT, SHIM

OBSERVE = ("import os; maps = open('/proc/self/maps').read(); "
           "print('threads', len(os.listdir('/proc/self/task')), "
           "'cuda', 'libcuda' in maps, 'nvml', 'nvidia-ml' in maps)")

@pytest.mark.parametrize("command", [["/bin/true"], ["/bin/sh", "-c", "echo hi; exit 7"],
                                     ["/bin/bash", "-c", "echo hi | cat; ls / | wc -l"],
                                     ["/usr/bin/env", "printf", "%s", "x"],
                                     ["/usr/bin/python3", "-c", "pass"],
                                     ["/usr/bin/python3", "-c", OBSERVE]])
def test_process_without_cuda_is_untouched(host, command):
    bare = host(*command, preload=False)
    run = host(*command)
    assert (run.code, run.stdout, run.stderr) == (bare.code, bare.stdout, bare.stderr)
    assert run.files == []
    if command[-1] == OBSERVE:
        assert run.stdout == "threads 1 cuda False nvml False\n"

def test_library_needs_no_more_than_libc(host):
    run = host("/bin/cat", "/proc/self/maps")
    bare = host("/bin/cat", "/proc/self/maps", preload=False)

    def libraries(text):
        return {line.split()[-1] for line in text.splitlines() if ".so" in line.split()[-1]}

    assert libraries(run.stdout) - libraries(bare.stdout) == {str(SHIM)}

def test_missing_driver_is_the_programs_own_affair(host):
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a driver")
    bare = host(PROGRAMS / "scenario_4.dlsym", preload=False, sim=False)
    run = host(PROGRAMS / "scenario_4.dlsym", sim=False)
    assert (run.code, run.stdout) == (bare.code, bare.stdout) == (77, "outcome: no driver\n")
    assert run.files == []

def test_weak_names_are_there_and_say_that_there_is_no_cuda(host):
    """Which nobody could tell without a call: a name that is exported is seen by all."""
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a driver")
    bare = host(PROGRAMS / "weak_names", preload=False, sim=False)
    run = host(PROGRAMS / "weak_names", sim=False)
    assert bare.stdout == "outcome: start -1\noutcome: allocation -1\noutcome: count -1\n"
    assert run.stdout == "outcome: start 500\noutcome: allocation 302\noutcome: count -1\n"
    assert (bare.code, run.code) == (0, 0)
    assert run.lines_of_shim == [] and run.files == []

def test_disabled_library_passes_everything_through(host, program):
    bare = host(program("scenario_3"), preload=False)
    run = host(program("scenario_3"), env={"GPUOOMSHIM_DISABLE": "1"})
    assert (run.code, run.stdout, run.stderr) == (bare.code, bare.stdout, bare.stderr)
    assert run.files == []

@pytest.mark.parametrize("name, value", [("RETRY", "sunc"), ("RETRY_BUDGET", "soon"),
                                         ("REPORT", "pdf"), ("STACK", "yes"),
                                         ("STACK_DEPTH", "-1"), ("LOG", "loud"),
                                         ("REPORT_MAX", "many"), ("DISABLE", "perhaps"),
                                         ("RETRI", "sync")])
def test_bad_setting_gives_one_line_and_the_default(host, name, value):
    bare = host(PROGRAMS / "scenario_4.dlsym", preload=False)
    run = host(PROGRAMS / "scenario_4.dlsym", env={f"GPUOOMSHIM_{name}": value})
    assert (run.code, run.stdout) == (bare.code, bare.stdout)
    about = [line for line in run.lines_of_shim if f"GPUOOMSHIM_{name}" in line]
    assert len(about) == 1, run.stderr
    assert value in about[0] or name == "RETRI"
    assert run.report.code == "exhausted-by-process"

def test_unwritable_folder_gives_the_report_elsewhere_and_says_so(host, tmp_path):
    closed = tmp_path / "no" / "such" / "folder"
    other = tmp_path / "tmp"
    other.mkdir()
    run = host(PROGRAMS / "scenario_4.dlsym", env={"GPUOOMSHIM_REPORT_DIR": str(closed),
                                                   "TMPDIR": str(other)})
    bare = host(PROGRAMS / "scenario_4.dlsym", preload=False)
    assert (run.code, run.stdout) == (bare.code, bare.stdout)
    found = list(other.glob("gpuoomshim.*.json")) or \
        [p for p in pathlib.Path("/tmp").glob("gpuoomshim.*.json")]
    assert found, run.stderr
    assert any(str(closed) in line or found[0].stem in line for line in run.lines_of_shim), \
        run.stderr
    for path in found:
        if path.parent == pathlib.Path("/tmp"):
            path.unlink()
            path.with_suffix(".txt").unlink(missing_ok=True)

def test_full_disk_gives_the_first_screen_on_stderr(host):
    """RLIMIT_FSIZE 0 lets no file grow; the signal that goes with it is ignored by the host."""
    import signal

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    run = host(PROGRAMS / "scenario_4.dlsym", preexec_fn=limit)
    bare = host(PROGRAMS / "scenario_4.dlsym", preload=False)
    assert (run.code, run.stdout) == (bare.code, bare.stdout), run.stderr
    assert run.reports == []
    assert [name for name in run.files if name.endswith((".txt", ".json"))] == []
    assert "exhausted-by-process" in run.stderr

def test_report_follows_no_link(host, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    run = host("/bin/sh", "-c",
               f'for n in 0 1 2; do for e in txt json; do '
               f'ln -s {victim} "$GPUOOMSHIM_REPORT_DIR/gpuoomshim.$(uname -n).$$.$n.$e"; '
               f'done; done; exec {PROGRAMS}/scenario_4.dlsym')
    assert run.code == 0, run.stderr
    assert victim.read_text() == "precious"

def test_environment_in_the_report_is_an_allow_list(host):
    run = host(PROGRAMS / "scenario_4.dlsym", env={"AWS_SECRET_ACCESS_KEY": "hunter2hunter2",
                                                   "PYTORCH_CUDA_ALLOC_CONF":
                                                   "max_split_size_mb:64"})
    whole = run.report.path.read_text() + run.report.text
    assert "hunter2hunter2" not in whole
    assert "max_split_size_mb:64" in whole

def test_survived_failures_make_no_noise(host, python):
    """A caller that fails, frees and asks again is a counter, no file, no line."""
    code = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, first, second = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
cuda.cuInit(0); cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
size = ctypes.c_size_t
assert cuda.cuMemAlloc_v2(ctypes.byref(first), size(12 << 30)) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(second), size(8 << 30)) == 2
assert cuda.cuMemFree_v2(first) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(second), size(8 << 30)) == 0
"""
    run = host(python, "-c", code)
    assert run.code == 0, run.stderr
    for report in run.reports:
        assert report.outcome == "recovered-by-caller"

def test_missing_headers_message_says_what_to_do(tmp_path):
    env = {"PATH": "/usr/bin:/bin", "CUDA_ROOTS": "/nonexistent", "PYTHON": "/bin/false",
           "HOME": str(tmp_path)}
    done = subprocess.run([ROOT / "scripts/find-cuda-headers.sh", tmp_path / "none"], env=env,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert "pip install nvidia-cuda-runtime" in done.stderr
    assert "CUDA_HOME" in done.stderr

def test_text_only_report(host):
    run = host(PROGRAMS / "scenario_4.dlsym", env={"GPUOOMSHIM_REPORT": "text"})
    assert [name.rsplit(".", 1)[1] for name in run.files] == ["txt"]

def test_reports_off(host):
    run = host(PROGRAMS / "scenario_4.dlsym", env={"GPUOOMSHIM_REPORT": "off"})
    assert run.files == []

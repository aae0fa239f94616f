"""Hosts and frameworks on a real GPU, with and without the library.

Without a GPU, what needs no more than the driver runs on the simulated one, so that
mistakes in the tests are found there; the rest is skipped.

Each test has a limit of its own, and there is one for all together: what it leaves no time for
is skipped, and says so.  The cheap and most telling ones come first.
"""
import functools
import os
import pathlib
import signal
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import gpu_machine  # noqa: E402
from hosts import LOAD_PATHS, MIB, PROGRAMS, run_host, same_answers  # noqa: E402

ORDER = ["test_books", "test_differential", "test_programs", "test_flush", "test_framework_view",
         "test_recovery", "test_frameworks", "test_verdicts", "test_rehearsal", "test_allocators",
         "test_demo"]
TEST_SECONDS = 60
ALL_SECONDS = int(os.environ.get("GOS_GPU_LIMIT", "660"))
BEGUN = time.monotonic()


def pytest_configure(config):
    for line in ("two_gpus: needs two GPUs",
                 "driver: needs no more than the driver; runs on the simulated one, too",
                 "seconds(count): the test's own limit",
                 "gib(count): needs a device of that much memory"):
        config.addinivalue_line("markers", line)


def why_not(item):
    if not gpu_machine.has_gpu():
        runs = gpu_machine.is_simulated() and item.get_closest_marker("driver")
        return None if runs else "no GPU here"
    if item.get_closest_marker("two_gpus") and gpu_machine.gpu_count() < 2:
        return "fewer than two GPUs"
    gib = item.get_closest_marker("gib")
    if gib and gpu_machine.gpu_bytes() < gib.args[0] * 1024 * MIB:
        return f"the GPU has less than {gib.args[0]} GiB"
    return None


def rank(item):
    name = item.path.stem
    return (item.get_closest_marker("two_gpus") is not None,
            ORDER.index(name) if name in ORDER else len(ORDER))


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(items):
    items.sort(key=rank)
    for item in items:
        if "program" in item.fixturenames:
            item.add_marker(pytest.mark.driver)
        reason = why_not(item)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_setup(item):
    if time.monotonic() - BEGUN > ALL_SECONDS:
        pytest.skip(f"no time left of {ALL_SECONDS} s (GOS_GPU_LIMIT)")


class TookTooLong(Exception):
    pass


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    marker = item.get_closest_marker("seconds")
    limit = marker.args[0] if marker else TEST_SECONDS

    def stop(_number, _frame):
        raise TookTooLong(f"more than {limit} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def host(tmp_path, request):
    """host(command…, preload=True, env={…}) runs it; reports go to a new folder."""
    simulated = gpu_machine.is_simulated()
    devices = "2" if request.node.get_closest_marker("two_gpus") else "1"
    shared = {"GPUSIM_STATE": str(tmp_path / "state"), "GPUSIM_DEVICES": devices}
    count = 0

    def run(*command, env=None, timeout=300, **options):
        nonlocal count
        count += 1
        env = {**shared, **(env or {})} if simulated else env
        return run_host(tmp_path / f"reports-{count}", command, sim=simulated, env=env,
                        timeout=timeout, **options)

    return run


@pytest.fixture
def same(host):
    """same(command…) runs without and with the library, compares, and returns the latter."""
    return functools.partial(same_answers, host)


@pytest.fixture(params=LOAD_PATHS)
def program(request):
    """Path of a driver host, once for each way to reach the driver."""
    return lambda name: PROGRAMS / f"{name}.{request.param}"


@pytest.fixture
def python_file(tmp_path):
    """The file of a Python program; skips where a module that it needs is missing."""

    def write(code, needs):
        missing = gpu_machine.lacks(*needs)
        if missing:
            pytest.skip(f"no {missing} here")
        path = tmp_path / "host.py"
        path.write_text(code)
        return path

    return write


@pytest.fixture
def script(same, python_file):
    """script(code, needs=[…]) with and without the library: same output; the run with it."""
    return lambda code, needs, **options: same(sys.executable, python_file(code, needs), **options)


@pytest.fixture
def two_ranks(host, python_file):
    """two_ranks(code, preload=True): one process for each of two GPUs; it must end well."""

    def run(code, **options):
        run = host(sys.executable, "-m", "torch.distributed.run", "--standalone",
                   "--local-addr=127.0.0.1", "--nproc-per-node=2",
                   python_file(code, ["torch"]),
                   env={"NCCL_NVLS_ENABLE": "0", "OMP_NUM_THREADS": "1"}, **options)
        assert run.code == 0, run.stdout[-2000:] + run.stderr[-4000:]
        return run

    return run


@pytest.fixture
def with_library(host, python_file):
    """with_library(code, needs=[…]): one run, which must end well."""

    def run(code, needs, *words, **options):
        done = host(sys.executable, python_file(code, needs), *words, **options)
        assert done.code == 0, done.stdout + done.stderr
        return done

    return run

"""Hosts and frameworks on a real GPU, with and without the library.

No simulated driver here; without a GPU everything is skipped.
"""
import ctypes
import importlib.util
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from hosts import run_host, same_answers  # noqa: E402


def has_gpu():
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


def pytest_collection_modifyitems(items):
    if has_gpu():
        return
    for item in items:
        item.add_marker(pytest.mark.skip(reason="no GPU here"))


@pytest.fixture
def host(tmp_path):
    """host(command…, preload=True, env={…}) runs it on the GPU; reports go to a new folder."""
    count = 0

    def run(*command, timeout=300, **options):
        nonlocal count
        count += 1
        folder = tmp_path / f"reports-{count}"
        return run_host(folder, command, sim=False, timeout=timeout, **options)

    return run


@pytest.fixture
def script(host, tmp_path):
    """Run python code with and without the library: same output; returns the run with it."""

    def run(code, needs, **options):
        for module in needs:
            if importlib.util.find_spec(module) is None:
                pytest.skip(f"no {module} here")
        path = tmp_path / "host.py"
        path.write_text(code)
        return same_answers(host, sys.executable, path, **options)

    return run

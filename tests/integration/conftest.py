"""Hosts under the preloaded library, on the simulated GPU."""
import functools
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from hosts import LOAD_PATHS, PROGRAMS, run_host, same_answers  # noqa: E402


@pytest.fixture
def host(tmp_path):
    """host(command…, preload=True, sim=True, env={…}) runs it; reports go to a new folder."""
    count = 0

    def run(*command, **options):
        nonlocal count
        count += 1
        return run_host(tmp_path / f"reports-{count}", command, **options)

    return run


@pytest.fixture
def same(host):
    """same(command…) runs without and with the library, compares, and returns the latter."""
    return functools.partial(same_answers, host)


@pytest.fixture(params=LOAD_PATHS)
def program(request):
    """Path of a driver host, once for each way to reach the driver."""
    return lambda name: PROGRAMS / f"{name}.{request.param}"


@pytest.fixture(scope="session")
def python():
    return sys.executable


@pytest.fixture
def ends_alike(host):
    """As same, for hosts that end otherwise than by 0."""
    def run(*command, **options):
        bare = host(*command, preload=False, **options)
        assert bare.files == []
        shimmed = host(*command, **options)
        assert (shimmed.code, shimmed.stdout) == (bare.code, bare.stdout), shimmed.stderr
        return shimmed

    return run

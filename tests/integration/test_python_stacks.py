"""Python stacks as every installed CPython tells them itself, frame by frame."""
import json
import os
import pathlib
import subprocess

import pytest

from pythons import KNOWN, of_version

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
PROBE = BUILD / "tests" / "programs" / "libpython_stack_probe.so"


def interpreter(version):
    """Some installed CPython of that version; without one the test is skipped."""
    return of_version(version) or pytest.skip("no CPython %s here" % version)


def run(version, program, *arguments, **environment):
    if not PROBE.exists():
        pytest.fail("%s is not built: make programs" % PROBE)
    python = interpreter(version)
    done = subprocess.run(
        [python, str(ROOT / "tests" / "programs" / program), str(PROBE), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


SHAPES = {
    "nested_functions", "deeper_than_is_kept", "generators", "coroutines", "threads",
    "lambdas_and_partials", "classes_and_protocols", "decorators_and_contexts",
    "calls_over_many_lines", "executed_source", "reused_code_objects", "names_beyond_ascii",
    "native_frames_between", "signal_handlers", "profiled_and_traced", "hot_code",
    "random_programs",
}


@pytest.mark.parametrize("version", KNOWN)
def test_captured_frames_equal_those_of_the_interpreter(version):
    result = run(version, "python_stack_shapes.py")
    assert result["told"]["version"].startswith(version + ".")
    assert result["told"]["unsupported"] is None
    assert set(result["shapes"]) == SHAPES
    wrong = {name: shape["wrong"][:2] for name, shape in result["shapes"].items() if shape["wrong"]}
    assert not wrong
    assert all(shape["frames"] > shape["stacks"] > 0 for shape in result["shapes"].values())


@pytest.mark.parametrize("version", KNOWN)
def test_lines_of_the_standard_library_equal_those_of_the_interpreter(version):
    result = run(version, "python_stack_lines.py")
    assert result["wrong_count"] == 0, result["wrong"]
    assert result["compared"] > 100_000


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.15"])
def test_other_versions_are_refused_with_a_reason(version):
    told = run(version, "python_stack_refused.py")
    assert told["unsupported"] == "CPython %s is not known" % version
    assert told["version"] is None
    assert told["frames"] == 0
    assert told["native"] > 3


@pytest.mark.parametrize("version", KNOWN)
def test_end_of_the_interpreter_is_survived(version):
    assert run(version, "python_stack_end.py") == {"ended": True}

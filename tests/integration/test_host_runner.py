"""What runs the hosts, and the tests for a GPU, which nobody sees fail here."""
import ast
import os
import re
import subprocess
import sys
import time

import pytest

from hosts import BUILD, ROOT, run_session

GPU_TESTS = ROOT / "tests" / "gpu"


def is_alive(pid):
    """A dead child that nobody has waited for yet is not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_host_that_hangs_is_ended_with_its_children(tmp_path):
    told = tmp_path / "pid"
    begun = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_session(["/bin/sh", "-c", f"sleep 300 & echo $! >{told}; wait"], 1)
    while is_alive(int(told.read_text())):
        assert time.monotonic() - begun < 60
        time.sleep(0.05)


def gpu_tests(*words, env=None):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
                          env={**os.environ, "BUILD": str(BUILD), **(env or {})})


def test_tests_for_a_gpu_are_collected_in_their_order():
    done = gpu_tests("--collect-only", GPU_TESTS)
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line for line in done.stdout.splitlines() if "::" in line]
    files = {name.split("::")[0] for name in names}
    assert len(files) == len(list(GPU_TESTS.glob("test_*.py")))
    assert "test_books.py" in names[0]
    # Those for two GPUs come last.
    assert "test_all_reduce" in " ".join(names[-4:])


def programs_in(path):
    """Texts of a test file that import something: the programs that it runs."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and \
                "\nimport " in node.value:
            yield node.value


@pytest.mark.parametrize("path", sorted(GPU_TESTS.glob("*.py")), ids=lambda path: path.stem)
def test_programs_inside_tests_for_a_gpu_are_python(path):
    """They run only where torch is; here they can at least be read."""
    for program in programs_in(path):
        # What is to be filled in may be a statement or an expression.
        compile(re.sub(r"(?<!\")%s", "unknown", program), path.name, "exec")


def test_what_there_is_no_time_for_is_skipped_and_says_so():
    done = gpu_tests("-rs", "-k", "lookup", GPU_TESTS, env={"GOS_GPU_LIMIT": "-1"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no time left of -1 s (GOS_GPU_LIMIT)" in done.stdout

"""The demo's program under torch."""
import sys

import pytest

import gpu_machine
from hosts import ROOT


def test_training_demo_points_at_the_line_that_keeps_memory(host):
    if gpu_machine.lacks("torch"):
        pytest.skip("no torch here")
    run = host(sys.executable, ROOT / "tests/programs/train_demo.py")
    assert run.code == 3, run.stdout + run.stderr
    assert run.report.code in ("leak", "exhausted-by-process", "fragmented")
    assert "train_demo.py" in run.report.text and "forward" in run.report.text

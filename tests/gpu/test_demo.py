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
    # torch frees nothing to the driver, so that no line can be accused of a leak; the few pieces
    # that its segments leave are no cause either.
    assert run.report.code == "exhausted-by-process"
    assert "grew steadily" in run.report.text
    assert "train_demo.py" in run.report.text and "forward" in run.report.text

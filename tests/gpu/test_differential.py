"""Kept sequences of calls on a real GPU: same answers, and books that agree at each step."""
from hosts import BUILD, LOAD_PATHS, ROOT

import pytest

SEQUENCES = ROOT / "tests" / "differential" / "silicon.seq"


@pytest.mark.parametrize("way", LOAD_PATHS)
def test_kept_sequences_have_the_same_answers(host, way):
    command = (BUILD / "tests" / "differential" / f"differential.{way}", SEQUENCES, "without-free")
    bare, run = host(*command, preload=False), host(*command)
    for one, other in zip(bare.stdout.splitlines(), run.stdout.splitlines()):
        assert one == other
    assert run.stdout == bare.stdout
    assert (bare.code, run.code) == (0, 0), run.stderr[:2000]
    assert run.files == []

"""Kept sequences of calls on a real GPU: same answers, and books that agree at each step.

Sixty sequences of small allocations, a third of them for each way to reach the driver.  Each has a
process of its own: run behind each other in one, some of them end a bare driver (580.159), too.
"""
import pytest

from hosts import BUILD, LOAD_PATHS, ROOT

SEQUENCES = ROOT / "tests" / "differential" / "silicon.seq"
HOSTS = BUILD / "tests" / "differential"
LIMIT_SECONDS = 20  # for what should take one; the host says where it stands then


def sequences(part):
    """Each third in turn."""
    kept = SEQUENCES.read_text().split("sequence ")[1:]
    return [f"sequence {one}" for one in kept[part::len(LOAD_PATHS)]]


def compare(host, command):
    limit = {"DIFFERENTIAL_LIMIT": str(LIMIT_SECONDS)}
    bare = host(*command, preload=False, env=limit, timeout=2 * LIMIT_SECONDS)
    run = host(*command, env=limit, timeout=2 * LIMIT_SECONDS)
    for one, other in zip(bare.stdout.splitlines(), run.stdout.splitlines()):
        assert one == other
    assert run.stdout == bare.stdout
    assert (bare.code, run.code) == (0, 0), bare.stderr[:1000] + run.stderr[:1000]
    assert {report.code for report in run.reports} <= {"in-capture"}  # they capture, too


@pytest.mark.driver
@pytest.mark.seconds(150)
@pytest.mark.parametrize("way", LOAD_PATHS)
def test_kept_sequences_have_the_same_answers(host, tmp_path, way):
    part = sequences(LOAD_PATHS.index(way))
    assert part
    for sequence in part:
        path = tmp_path / "sequence"
        path.write_text(sequence)
        compare(host, (HOSTS / f"differential.{way}", path, "without-free"))

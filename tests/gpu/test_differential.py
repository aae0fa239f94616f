"""Kept sequences of calls on a real GPU: same answers, and books that agree at each step.

Sixty sequences of small allocations, a third of them for each way to reach the driver, one
process for each third.  Some 6000 driver calls a process: seconds.
"""
import pytest

from hosts import BUILD, LOAD_PATHS, ROOT

SEQUENCES = ROOT / "tests" / "differential" / "silicon.seq"
HOSTS = BUILD / "tests" / "differential"
LIMIT_SECONDS = 60  # for what should take ten; the host says where it stands then


def sequences(part):
    """Each third in turn."""
    kept = SEQUENCES.read_text().split("sequence ")[1:]
    return "".join(f"sequence {one}" for one in kept[part::len(LOAD_PATHS)])


def took_too_long(run):
    return next((line for line in run.stderr.splitlines() if line.startswith("gave up")), None)


@pytest.mark.driver
@pytest.mark.seconds(2 * LIMIT_SECONDS + 40)
@pytest.mark.parametrize("way", LOAD_PATHS)
def test_kept_sequences_have_the_same_answers(host, tmp_path, way):
    path = tmp_path / "sequences"
    path.write_text(sequences(LOAD_PATHS.index(way)))
    command = (HOSTS / f"differential.{way}", path, "without-free")
    limit = {"DIFFERENTIAL_LIMIT": str(LIMIT_SECONDS)}
    bare = host(*command, preload=False, env=limit, timeout=LIMIT_SECONDS + 20)
    assert took_too_long(bare) is None, "without the library: " + took_too_long(bare)
    run = host(*command, env=limit, timeout=LIMIT_SECONDS + 20)
    assert took_too_long(run) is None, took_too_long(run)
    for one, other in zip(bare.stdout.splitlines(), run.stdout.splitlines()):
        assert one == other
    assert run.stdout == bare.stdout
    assert (bare.code, run.code) == (0, 0), run.stderr[:2000]
    assert run.files == []

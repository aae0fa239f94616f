"""What a host holds by its own books (tests/programs/own.h) beside what the library says."""
import re

from hosts import Report


def moments(run):
    return re.findall(r"^shim: own_(\w+)=\d+$", run.stderr, flags=re.M)


def books_agree(run):
    """Live bytes at each moment that the host told."""
    assert moments(run), run.stderr
    own = {moment: run.told(f"own_{moment}") for moment in moments(run)}
    live = {moment: run.told(f"live_{moment}") for moment in moments(run)}
    assert live == own


def snapshots_agree(run, folder):
    """Live bytes of one kind, in the snapshot of each moment at which the host took one."""
    told = re.findall(r"^shim: kind_(\w+)_([a-z]+)=(\d+)$", run.stderr, flags=re.M)
    assert told, run.stderr
    for moment, kind, size in told:
        report = Report(folder / f"{moment}.json")
        report.check()
        assert report.live_bytes_by_kind().get(kind, 0) == int(size), (moment, kind)

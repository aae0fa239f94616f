"""Driver programs with books of their own, on silicon: tests/integration/test_books.py there."""
import pytest

from books import books_agree, snapshots_agree


@pytest.mark.two_gpus
def test_memory_is_on_its_own_device_whoever_is_current_and_whoever_frees_it(same, program):
    run = same(program("own_devices"))
    books_agree(run)
    assert run.files == []


def test_segment_that_grows_and_shrinks_is_physical_memory_once(same, program):
    run = same(program("own_vmm"))
    books_agree(run)
    assert run.files == []


@pytest.mark.parametrize("name", ["own_graph", "own_ipc", "own_managed"])
def test_each_kind_of_memory_is_what_the_host_says(same, program, name, tmp_path):
    run = same(program(name), tmp_path)
    books_agree(run)
    snapshots_agree(run, tmp_path)
    assert {report.code for report in run.reports} <= {"in-capture"}  # one of them captures

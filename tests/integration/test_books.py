"""Hosts with books of their own: the library's agree at every moment."""
import pytest

from books import books_agree, snapshots_agree
from hosts import MIB


def test_memory_is_on_its_own_device_whoever_is_current_and_whoever_frees_it(same, program):
    run = same(program("own_devices"), env={"GPUSIM_DEVICES": "2"})
    books_agree(run)
    assert (run.told("own_each0"), run.told("own_each1")) == ([3 * MIB], [5 * MIB])
    assert run.told("own_stream1") == [7 * MIB]
    assert run.told("own_one0") == [MIB]
    assert run.files == []


def test_device_that_is_alone_is_no_failure(host, program):
    assert host(program("own_devices")).code == 77


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

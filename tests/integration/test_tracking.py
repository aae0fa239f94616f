"""What is alive is known, exactly, whichever way it was allocated and freed."""
from hosts import MIB, Report


def test_every_kind_is_counted_and_nothing_remains(host, program):
    bare = host(program("alloc_kinds"), preload=False)
    run = host(program("alloc_kinds"))
    assert bare.code == run.code == 0, bare.stdout + run.stdout + run.stderr
    assert run.stdout == bare.stdout
    alive, freed = run.told("live_bytes")
    assert freed == 0
    assert run.told("live_count")[1] == 0
    # 3 MiB device, pitched rows, managed, two in pools, one mapped block at least.
    assert alive >= (3 + 1 + 1 + 1 + 2) * MIB + 100 * 1000
    assert run.files == []


def stacks_are_on(report):
    return report.json["tracking"]["unwinder"] != "none"


def test_snapshot_lists_every_kind_with_its_size(host, program, tmp_path):
    prefix = tmp_path / "snapshot"
    run = host(program("alloc_kinds"), prefix)
    assert run.told("snapshot") == [0]
    (path,) = tmp_path.glob("snapshot*.json")
    report = Report(path)
    report.check()
    assert report.json["kind"] == "snapshot"
    if stacks_are_on(report):
        assert all(site["stack"] for site in report.json["sites"]), "a kind without a stack"
    live = report.live_bytes_by_kind()
    assert live["device"] >= 3 * MIB + 100 * 1000
    assert live["managed"] == MIB
    assert live["pool"] == 2 * MIB
    assert live["host"] == 2 * MIB
    assert live["registered"] == MIB
    assert live["physical"] == 2 * MIB


def test_refused_frees_keep_records_and_crossed_frees_remove_them(host, program):
    bare = host(program("refused_free"), preload=False)
    run = host(program("refused_free"))
    assert bare.code == run.code == 0, run.stdout + run.stderr
    assert run.stdout == bare.stdout
    assert run.told("live_bytes") == [MIB, 0]
    assert run.files == []


def test_churning_threads_leave_nothing(host, program):
    run = host(program("churn"), "16", "500")
    assert run.code == 0, run.stdout + run.stderr
    assert run.told("live_bytes") == [0]
    assert run.told("live_count") == [0]
    assert run.files == []


def test_exit_report_lists_what_is_left(host, program):
    run = host(program("scenario_8"), env={"GPUSIM_FAIL": "cuLaunchKernel:209:1",
                                           "GPUOOMSHIM_EXIT_REPORT": "1"})
    kinds = [report.json["kind"] for report in run.reports]
    assert kinds == ["failure", "exit"]


def test_counters_work_from_ctypes(host, python):
    code = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
shim = ctypes.CDLL(None)
shim.gpuoomshim_live_bytes.restype = ctypes.c_uint64
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(5 << 20)) == 0
print(shim.gpuoomshim_live_bytes(0))
assert cuda.cuMemFree_v2(address) == 0
print(shim.gpuoomshim_live_bytes(0))
"""
    run = host(python, "-c", code)
    assert run.stdout.split() == [str(5 * MIB), "0"], run.stderr

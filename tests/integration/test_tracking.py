"""What is alive is known, exactly, whichever way it was allocated and freed."""
import pytest

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


IN_PYTHON = """
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
shim = ctypes.CDLL(None)
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
"""


def test_snapshots_from_ctypes_do_not_use_up_the_reports(host, python):
    run = host(python, "-c", IN_PYTHON + """
print([shim.gpuoomshim_snapshot(None) for _ in range(4)])
print(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 40)))
""", env={"GPUOOMSHIM_REPORT_MAX": "3"})
    assert run.stdout == "[0, 0, 0, -122]\n2\n", run.stderr
    assert [report.json["kind"] for report in run.reports] == ["snapshot"] * 3 + ["failure"]


def test_snapshot_from_ctypes_wants_a_name_that_names_files(host, python, tmp_path):
    run = host(python, "-c", IN_PYTHON + f"""
os.chdir({str(tmp_path)!r})
os.mkdir("folder")
print([shim.gpuoomshim_snapshot(name) for name in (b"", b"folder/", b"folder/now")])
print(sorted(os.listdir("folder")), os.path.exists(".txt"))
""")
    assert run.stdout == "[-22, -22, 0]\n['now.json', 'now.txt'] False\n", run.stderr


@pytest.mark.parametrize("call", ["cuMemAllocPitch_v2", "cudaMallocPitch"])
def test_rows_are_reckoned_with_their_padding_from_ctypes(host, python, call):
    """Rows of 513 bytes take 1024 each: there is room for the bytes, not for the rows."""
    run = host(python, "-c", IN_PYTHON + f"""
pitch, size = ctypes.c_size_t(), ctypes.c_size_t
runtime = ctypes.CDLL("libcudart.so.13")
rows = [ctypes.byref(address), ctypes.byref(pitch), size(513), size(20 << 20)]
if "{call}" == "cudaMallocPitch":
    print(runtime.cudaMallocPitch(*rows))
else:
    print(cuda.cuMemAllocPitch_v2(*rows, 4))
""")
    assert run.stdout == "2\n", run.stderr
    assert run.report.json["request"]["bytes"] == 1024 * 20 * MIB
    assert run.report.code == "request-too-large"


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

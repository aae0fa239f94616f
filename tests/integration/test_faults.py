"""Failures that nobody asked for, in whichever driver function they strike."""
import pytest

from hosts import PROGRAMS

# What a diagnosis and a recovery ask of the driver.
ASKED = ["cuMemGetInfo_v2", "cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceGetUuid_v2",
         "cuMemPoolGetAttribute", "cuMemPoolTrimTo", "cuStreamIsCapturing", "cuStreamQuery",
         "cuStreamGetCtx", "cuStreamGetCaptureInfo_v2", "cuCtxGetDevice", "cuCtxGetCurrent",
         "cuDeviceGetDefaultMemPool", "cuDeviceGetMemPool", "cuDriverGetVersion",
         "cuDeviceGetGraphMemAttribute", "cuDeviceGraphMemTrim", "cuDeviceGetAttribute",
         "cuDeviceGetCount", "cuPointerGetAttribute", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2",
         "cuThreadExchangeStreamCaptureMode", "cuDevicePrimaryCtxGetState"]


@pytest.mark.parametrize("function", ASKED)
def test_function_that_always_fails_costs_a_line_of_evidence_at_most(host, function):
    env = {"GPUSIM_FAIL": f"{function}:999:0"}
    bare = host(PROGRAMS / "scenario_4.dlsym", preload=False, env=env)
    run = host(PROGRAMS / "scenario_4.dlsym", env=env)
    assert (run.code, run.stdout) == (bare.code, bare.stdout), run.stderr
    if bare.code == 0:
        assert run.report.outcome == "failed"


# Calls of a host that makes, uses and frees every kind of memory.
CALLED = ["cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemAllocManaged", "cuMemAllocHost_v2",
          "cuMemHostAlloc", "cuMemHostRegister_v2", "cuMemAllocAsync", "cuMemAllocFromPoolAsync",
          "cuMemPoolCreate", "cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess",
          "cuMemFree_v2", "cuMemFreeHost", "cuMemHostUnregister", "cuMemFreeAsync",
          "cuMemPoolDestroy", "cuMemUnmap", "cuMemRelease", "cuMemAddressFree",
          "cuStreamDestroy_v2", "cuDevicePrimaryCtxRetain", "cuInit"]


@pytest.mark.parametrize("result", [1, 2, 719])
@pytest.mark.parametrize("function", CALLED)
def test_result_of_the_driver_reaches_the_host_unchanged(host, function, result):
    env = {"GPUSIM_FAIL": f"{function}:{result}:0"}
    bare = host(PROGRAMS / "alloc_kinds.resolver", preload=False, env=env)
    run = host(PROGRAMS / "alloc_kinds.resolver", env=env)
    assert (run.code, run.stdout) == (bare.code, bare.stdout), run.stderr
    assert bare.code in (1, 77)


@pytest.mark.parametrize("view", ["full", "own", "empty", "forbidden", "absent"])
def test_every_view_of_nvml_gives_a_ledger_that_adds_up(same, view):
    run = same(PROGRAMS / "scenario_4.dlsym", env={"GPUSIM_NVML": view})
    assert run.report.code == "exhausted-by-process"
    assert run.report.ledger()["residual"] == 0


@pytest.mark.parametrize("version", ["11020", "11040", "12000", "12040", "13000"])
def test_older_drivers_lack_functions_and_work_all_the_same(host, version):
    env = {"GPUSIM_DRIVER_VERSION": version}
    bare = host(PROGRAMS / "scenario_4.resolver", preload=False, env=env)
    run = host(PROGRAMS / "scenario_4.resolver", env=env)
    assert (run.code, run.stdout) == (bare.code, bare.stdout), run.stderr

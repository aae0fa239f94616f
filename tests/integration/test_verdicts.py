"""What could not be seen, which versions do not fit, and fragmentation in numbers."""
import contextlib
import re
import shutil
import subprocess

import pytest

from hosts import LOAD_PATHS, MIB, PROGRAMS, ROOT, SHIM, SIM


def said(report, words):
    return [line for line in report.json["incomplete"] if words in line]


# --- not seen ---


@pytest.mark.parametrize("view, words", [
    ("full", None),
    ("empty", "any process, this one too (NVML's list is empty"),
    ("forbidden", "processes (NVML refuses: no permission)"),
    ("absent", "NVML is not there"),
    ("numberless", "pids without numbers, as on WSL"),
    ("mig", "only this MIG instance is shown"),
])
def test_each_view_of_nvml_has_its_own_words(same, program, view, words):
    report = same(program("scenario_4"), env={"GPUSIM_NVML": view}).report
    assert report.code == "exhausted-by-process"
    assert report.ledger()["live_pool"] == 12288 * MIB
    if words is None:
        assert report.json["incomplete"] == []
        assert report.ledger()["context_modules"] == 512 * MIB
    else:
        assert said(report, words), report.json["incomplete"]
        assert report.ledger()["context_modules"] == 0
        assert report.ledger()["hidden"] == 512 * MIB


@pytest.mark.parametrize("view", ["empty", "forbidden", "absent", "numberless", "mig"])
def test_own_context_that_nobody_lists_is_not_blamed_on_others(same, program, view):
    report = same(program("leak"),
                  env={"GPUSIM_NVML": view, "GPUSIM_CONTEXT": "2000"}).report
    # More than is missing, and more than a context is thought to take: it could be a neighbour.
    assert report.json["verdict"]["short_bytes"] < 900 * MIB < report.ledger()["hidden"]
    assert report.code == "leak"


def test_memory_that_no_call_allocated_is_named(same, program):
    verdict = same(program("first_allocation"), env={"GPUSIM_CONTEXT": "16340"}).report.json["verdict"]
    assert (verdict["code"], verdict["confidence"]) == ("exhausted-by-process", "proven")
    assert "15.96 GiB in contexts, modules and what else no call allocates." in verdict["summary"]
    assert "cudaDeviceSetLimit" in verdict["advice"][0]


def test_neighbour_that_a_container_hides_is_said_to_be_hidden(same, program, tmp_path):
    report = same(program("scenario_5"), "stays",
                  env={"GPUSIM_STATE": str(tmp_path / "state"), "GPUSIM_NVML": "own"}).reports[0]
    assert said(report, "does not list here (other containers or users)")


def test_mig_instance_has_its_own_uuid_and_no_list(same, program):
    report = same(program("scenario_4"), env={"GPUSIM_NVML": "mig"}).report
    assert report.device()["mig"] and report.device()["uuid"].startswith("MIG-")
    assert said(report, "a MIG instance: NVML lists them for the whole card")


def test_integrated_gpu_shares_what_is_free_with_the_host(same, program, tmp_path):
    report = same(program("scenario_5"), "stays",
                  env={"GPUSIM_STATE": str(tmp_path / "state"), "GPUSIM_NVML": "absent",
                       "GPUSIM_INTEGRATED": "1"}).reports[0]
    assert report.device()["integrated"]
    assert said(report, "integrated: it shares the host's memory")
    assert report.code == "host-memory"


@contextlib.contextmanager
def mps_server(folder):
    """A process of the name that an MPS server has."""
    link = folder / "nvidia-cuda-mps-server"
    link.symlink_to("/bin/sleep")
    server = subprocess.Popen([str(link), "100"])
    try:
        yield server.pid
    finally:
        server.kill()
        server.wait()


def test_memory_of_an_mps_server_is_not_blamed_on_others(same, program, tmp_path):
    with mps_server(tmp_path) as pid:
        report = same(program("scenario_4"), env={"GPUSIM_MPS_SERVER": str(pid)}).report
    (server,) = report.json["processes"]
    assert server["pid"] == pid and server["mps_server"]
    assert report.device()["mps"]
    assert report.code == "exhausted-by-process"
    assert report.ledger()["others"] == 0
    assert said(report, f"the MPS server (pid {pid})")


def test_two_gpus_are_two_ledgers_and_the_full_one_is_blamed(same, program):
    report = same(program("two_gpus"), env={"GPUSIM_DEVICES": "3"}).report
    assert (report.code, report.json["verdict"]["device"]) == ("exhausted-by-process", 1)
    assert report.ledger(0)["live_device"] == 64 * MIB
    assert report.ledger(1)["live_device"] == 12288 * MIB
    assert said(report, "1 of 3 visible GPUs")


def test_host_has_its_limits_in_the_report(same, program):
    host = same(program("scenario_4")).report.json["host"]
    assert host["overcommit_mode"] in (0, 1, 2)
    assert host["commit_limit_bytes"] > 0 and host["committed_bytes"] > 0
    assert host["mapped_address_bytes"] <= host["reserved_address_bytes"]


# --- versions ---


# A resolver of 12.8 has no names of 13.0 to give.
@pytest.mark.parametrize("path", [path for path in LOAD_PATHS if path != "resolver"])
def test_runtime_that_is_too_new_for_the_driver_is_named_with_its_path(host, path):
    cudart = SIM / "libcudart.so.13"
    report = host(PROGRAMS / f"first_allocation.{path}",
                  env={"LD_PRELOAD": f"{SHIM}:{cudart}", "GPUSIM_DRIVER_VERSION": "12080",
                       "GPUSIM_FAIL": "cuMemAlloc_v2:2"}).report
    assert report.code == "driver-or-context"
    (line,) = report.json["mismatches"]
    assert str(cudart) in line and "at least 580" in line and "serves CUDA 12.8" in line
    assert "THESE VERSIONS DO NOT FIT TOGETHER" in report.text
    assert "Update the driver to 580 or newer, or use a build for CUDA 12." in \
        report.json["verdict"]["advice"]


def test_versions_that_fit_are_no_suspects(host, program):
    cudart = SIM / "libcudart.so.13"
    report = host(program("first_allocation"),
                  env={"LD_PRELOAD": f"{SHIM}:{cudart}", "GPUSIM_FAIL": "cuMemAlloc_v2:2"}).report
    assert report.json["mismatches"] == []
    assert report.code == "unexplained"
    assert "libcudart.so.13" in [version["what"] for version in report.json["versions"]]


def test_library_that_is_loaded_twice_is_told_with_both_paths(host, program, tmp_path):
    copies = [tmp_path / name for name in ("one/libcudnn.so.9.1.0", "two/libcudnn_ops.so.8.9.7",
                                           "one/libnccl.so.2.28.3", "two/libnccl.so.2.18.1")]
    for copy in copies:
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(PROGRAMS / "libnccl.so.2", copy)
    report = host(program("first_allocation"),
                  env={"LD_PRELOAD": ":".join(map(str, [SHIM, *copies])),
                       "GPUSIM_FAIL": "cuMemAlloc_v2:2"}).report
    assert report.json["mismatches"] == [
        f"cuDNN is loaded from two places: 9.1.0 ({copies[0]}), 8.9.7 ({copies[1]})",
        f"NCCL is loaded from two places: 2.28.3 ({copies[2]}), 2.18.1 ({copies[3]})"]
    assert "THESE VERSIONS DO NOT FIT TOGETHER" in report.text
    assert report.code == "unexplained"


@pytest.mark.parametrize("result, advice", [
    (34, "Take the toolkit's lib64/stubs out of LD_LIBRARY_PATH"),
    (803, "Reload the kernel module"),
    (804, "Take the cuda-compat libraries out of the library path"),
    (3, "Let the CUDA runtime start"),
])
def test_code_that_says_what_is_wrong_is_believed(same, program, result, advice):
    report = same(program("first_allocation"), env={"GPUSIM_FAIL": f"cuMemAlloc_v2:{result}"}).report
    assert (report.code, report.json["verdict"]["confidence"]) == ("driver-or-context", "proven")
    assert any(advice in line for line in report.json["verdict"]["advice"])
    assert report.json["recovery"][0]["reason"] == "the error is not out-of-memory"


def test_stub_of_the_toolkit_is_named_with_its_path(host, program, tmp_path):
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
        (stubs / library).symlink_to(SIM / library)
    run = host(program("first_allocation"),
               env={"LD_LIBRARY_PATH": str(stubs), "GPUSIM_FAIL": "cuMemAlloc_v2:34"})
    (line,) = run.report.json["mismatches"]
    assert str(stubs / "libcuda.so.1") in line
    assert run.report.json["verdict"]["advice"] == \
        ["Take the toolkit's lib64/stubs out of LD_LIBRARY_PATH and out of RPATHs."]


# --- fragmentation ---


def worked_example():
    """The numbers of README.md's table: name to (pieces, unused, share)."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z ]+) \|.*\| (\d+) MiB \| (\d+) MiB \| ([\d.]+) % \|$",
                      text, re.MULTILINE)
    return {name: (int(pieces), int(unused), float(share)) for name, pieces, unused, share in rows}


def test_fragmentation_is_what_the_readme_reckons(same, program):
    run = same(program("fragments"))
    (report,) = [report for report in run.reports if report.json["kind"] == "snapshot"]
    example = worked_example()
    device, fragments = report.device(), report.device()["fragmentation"]
    pieces, unused, share = example["device blocks"]
    assert fragments["block_stuck_bytes"] == pieces * MIB
    assert fragments["block_stuck_bytes"] + device["free_bytes"] == unused * MIB
    assert fragments["block_permille"] == int(share * 10)
    assert fragments["block_lost_count"] == 0
    pieces, unused, share = example["pools"]
    idle = {pool["live_bytes"] > 0: pool["reserved_bytes"] - pool["used_bytes"]
            for pool in report.json["pools"] if pool["reserved_bytes"]}
    assert idle == {True: pieces * MIB, False: (unused - pieces) * MIB}
    assert fragments["pool_permille"] == int(share * 10)


def test_pieces_are_what_remains_when_the_request_fails(same, program):
    run = same(program("fragments"))
    (report,) = [report for report in run.reports if report.json["kind"] == "failure"]
    fragments = report.device()["fragmentation"]
    assert fragments["pool_permille"] == 1000
    assert fragments["block_stuck_bytes"] == 256 * MIB

"""Every row of entrypoints.def, through every way to reach it, against drivers that only log.

The host (tests/rows) checks what a caller sees: our function under its own
name, one call of the real one, the same arguments, results, out-parameters and
errno.  Here is checked what the library noted.
"""
import functools
import json
import os
import pathlib
import subprocess
import tempfile

import pytest

from hosts import BUILD, EMULATOR, LOAD_PATHS, emulated, library_variables

ROWS = BUILD / "tests" / "rows"
STORY_HOST = "stories.inside" if LOAD_PATHS == ("inside",) else "stories"
if not (ROWS / STORY_HOST).exists():
    pytest.skip("not built: there is no C++ compiler", allow_module_level=True)

# Rows that pass out-of-memory on without a word: they only look, or give back.
ASKS_FOR_NOTHING = {"FREE", "RESOLVE", "TELL"}
MAKERS = {"cuMemPoolCreate", "cuMemPoolImportFromShareableHandle", "cuCtxCreate", "cuCtxCreate_v2",
          "cuCtxCreate_v3", "cuCtxCreate_v4", "cuDevicePrimaryCtxRetain", "cuGreenCtxCreate"}

# The host's arguments: the second is 0x2000, or 2 where it has 32 bits (row_host.c), and what
# row_plans.c puts behind pointers.
SECOND, SECOND_OF_32_BITS = 0x2000, 2
ARRAY, ARRAY_3D = 64 * 10 * 4, 64 * 10 * 3 * 4
IMPORTED = 0x51515
RECORDS = {
    "cuMemAlloc": {"device": SECOND_OF_32_BITS},
    "cuMemAlloc_v2": {"device": SECOND},
    "cuMemAllocPitch": {"device": 512 * 4},
    "cuMemAllocPitch_v2": {"device": 512 * 0x4000},
    "cuMemAllocManaged": {"managed": SECOND},
    "cuArrayCreate": {"array": ARRAY},
    "cuArrayCreate_v2": {"array": ARRAY},
    "cuArray3DCreate": {"array": ARRAY_3D},
    "cuArray3DCreate_v2": {"array": ARRAY_3D},
    "cuMipmappedArrayCreate": {"array": (64 * 10 * 3 + 32 * 5 + 16 * 2) * 4},
    "cuMemAllocHost": {"host": SECOND_OF_32_BITS},
    "cuMemAllocHost_v2": {"host": SECOND},
    "cuMemHostAlloc": {"host": SECOND},
    "cuMemHostRegister": {"registered": SECOND},
    "cuMemHostRegister_v2": {"registered": SECOND},
    "cuMemAllocAsync": {"pool": SECOND},
    "cuMemAllocAsync_ptsz": {"pool": SECOND},
    "cuMemAllocFromPoolAsync": {"pool": SECOND},
    "cuMemAllocFromPoolAsync_ptsz": {"pool": SECOND},
    "cuMemPoolImportPointer": {"imported": IMPORTED},
    "cuGraphAddMemAllocNode": {"graph": 9000},
    "cuGraphAddNode": {"graph": 9000},
    "cuGraphAddNode_v2": {"graph": 9000},
    "cuGraphAddNode_v3": {"graph": 9000},
    "cuMemCreate": {"physical": SECOND},
    "cuMemRetainAllocationHandle": {"physical": SECOND},
    "cuMemMap": {"physical": SECOND, "mapping": SECOND},
    "cuMemAddressReserve": {"address": SECOND},
    "cuIpcOpenMemHandle": {"imported": IMPORTED},
    "cuIpcOpenMemHandle_v2": {"imported": IMPORTED},
    "cuMemImportFromShareableHandle": {"handle": 0},
    "cuMulticastCreate": {"handle": 5000},
    "cuImportExternalMemory": {"handle": 7000},
    "cuExternalMemoryGetMappedBuffer": {"imported": 6000},
    "cuExternalMemoryGetMappedMipmappedArray": {"array": 0},
}
ENDS_CONTEXT = {"cuCtxDestroy", "cuCtxDestroy_v2", "cuCtxDetach", "cuDevicePrimaryCtxRelease",
                "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxReset",
                "cuDevicePrimaryCtxReset_v2"}


def run_host(program, word, variables):
    """The program on the drivers that log, here or in the emulator."""
    variables = {**variables, "LD_LIBRARY_PATH": str(ROWS)}
    command = [ROWS / program, word]
    environment = {**os.environ, **variables}
    if EMULATOR:
        command = emulated(command, variables)
        environment = {name: value for name, value in environment.items()
                       if not name.startswith("LD_")}
    return subprocess.run([str(one) for one in command], env=environment, timeout=300,
                          capture_output=True, text=True, check=False)


def listed(path):
    process = run_host(f"rows.{path}", "--list", {})
    assert process.returncode == 0 and process.stdout, process.stderr
    return [tuple(line.split()) for line in process.stdout.splitlines()]


def live(snapshot):
    kinds = {}
    for site in snapshot["sites"]:
        count, size = kinds.get(site["kind"], (0, 0))
        kinds[site["kind"]] = (count + site["live_count"], size + site["live_bytes"])
    return kinds


def run_preloaded(program, folder):
    return run_host(program, folder, {
        **library_variables([program], preload=True, sim=False),
        "GPUOOMSHIM_REPORT_DIR": folder, "GPUOOMSHIM_REPORT": "json",
        "GPUOOMSHIM_REPORT_MAX": "100000", "GPUOOMSHIM_RETRY": "off", "GPUOOMSHIM_LOG": "error",
    })


class Results:
    """What one run of a host said and left."""

    def __init__(self, program):
        with tempfile.TemporaryDirectory() as folder:
            process = run_preloaded(program, folder)
            files = {file.name: json.loads(file.read_text())
                     for file in pathlib.Path(folder).glob("*.json")}
        self.code = process.returncode
        self.stdout = process.stdout
        self.stderr = process.stderr
        self.lines = [line.split(": ", 1) for line in process.stdout.splitlines()]
        self.requests = [file["request"] for file in files.values() if file["kind"] == "failure"]
        self.files = {name.removesuffix(".json"): file for name, file in files.items()
                      if file["kind"] == "snapshot"}
        self.snapshots = {name: live(file) for name, file in self.files.items()}

    def said(self, symbol):
        return [line[1] for line in self.lines if line[0] == symbol]

    def failed(self, symbol):
        return [request for request in self.requests if request["api"] == symbol]


@functools.cache
def results(program):
    return Results(program)


def cases():
    for path in LOAD_PATHS:
        for symbol, role, entry in listed(path):
            yield pytest.param(path, symbol, role, entry, id=f"{symbol}-{path}")


def check_records(run, symbol, role, entry):
    if entry in RECORDS:
        expected = {kind: (1, size) for kind, size in RECORDS[entry].items()}
        assert run.snapshots[f"{symbol}.made"] == expected
        assert run.snapshots[f"{symbol}.freed"] == {}
    elif role == "FREE" or symbol in ENDS_CONTEXT:
        assert run.snapshots[f"{symbol}.kept"] != {}, "a refused free lost the record"
        assert run.snapshots[f"{symbol}.freed"] == {}
    else:
        assert role != "ALLOC", "what does this row record?"


def check_failure(run, symbol, role, entry):
    if role in ASKS_FOR_NOTHING or role in ("POOL", "CONTEXT") and entry not in MAKERS:
        assert run.failed(symbol) == []
        return
    (request,) = run.failed(symbol)
    assert request["result"] == 2
    assert request["entry"] == entry
    if entry in RECORDS and entry != "cuMemMap" and len(RECORDS[entry]) == 1:
        check_request(request, entry)


def check_request(request, symbol):
    """What is asked for is known before; an importer learns it after."""
    ((kind, size),) = RECORDS[symbol].items()
    if symbol == "cuMemRetainAllocationHandle":
        assert request["kind"] == "none"
        return
    assert request["kind"] == kind
    if kind != "imported" and not symbol.startswith("cuMemAllocPitch"):
        assert request["bytes"] == size


@pytest.mark.parametrize("path, symbol, role, entry", cases())
def test_row(path, symbol, role, entry):
    """entry: the driver's function, which for a runtime's is one that it calls."""
    run = results(f"rows.{path}")
    assert run.said(symbol) == ["done"], run.stderr
    assert symbol.startswith("cuda") == (entry != symbol)
    check_records(run, symbol, role, entry)
    check_failure(run, symbol, role, entry)


@pytest.mark.parametrize("path", LOAD_PATHS)
def test_host_of_all_rows_ends_well(path):
    run = results(f"rows.{path}")
    assert run.code == 0, run.stderr
    assert len(run.lines) == len(listed(path))


STORIES = {
    "ipc.opened-twice": {"imported": (1, IMPORTED)},
    "ipc.closed-once": {"imported": (1, IMPORTED)},
    "ipc.close-refused": {"imported": (1, IMPORTED)},
    "ipc.closed-twice": {},
    "attach.detached-once": {"device": (1, 4096)},
    "attach.detached-twice": {},
    "pool.destroyed": {"pool": (1, 4096)},
    "pool.freed": {},
    "pool.of-device-3": {"pool": (1, 4096)},
    "pool.of-host": {"host": (1, 4096)},
    "pool.managed": {"managed": (1, 4096)},
    "pool.managed-on-device-3": {"managed": (1, 4096)},
    "capture.ended": {},
    "capture.launched": {"graph": (1, 4096)},
    "capture.freed": {},
    "import.released-once": {"physical": (1, 4096)},
    "import.released-twice": {},
    "array.shows": {"array": (1, 0), "physical": (1, 4096)},
    "array.unmapped": {"array": (1, 0)},
    "array.shows-another": {"array": (1, 0), "physical": (1, 8192)},
    "array.destroyed": {},
    "node.allocates": {"graph": (1, 4096)},
    "node.frees": {},
    "green.destroyed": {"device": (1, 4096)},
    "green.primary-released": {},
}


@pytest.mark.parametrize("story_host", [STORY_HOST])
@pytest.mark.parametrize("moment", STORIES)
def test_moment_of_a_story(moment, story_host):
    run = results(story_host)
    assert run.code == 0, run.stderr
    if moment not in run.snapshots:
        pytest.skip("not in the headers of this toolkit")
    assert run.snapshots[moment] == STORIES[moment]


@pytest.mark.parametrize("story_host", [STORY_HOST])
def test_all_stories_are_told(story_host):
    told = set(results(story_host).snapshots)
    assert told <= set(STORIES)
    assert told >= {moment for moment in STORIES if not moment.startswith(("node", "green"))}


@pytest.mark.parametrize("story_host", [STORY_HOST])
@pytest.mark.parametrize("moment, device", [
    ("pool.of-device-3", 3), ("pool.managed-on-device-3", 3), ("pool.managed", 0)])
def test_memory_from_a_pool_is_on_the_device_of_the_pool(moment, device, story_host):
    (site,) = results(story_host).files[moment]["sites"]
    assert site["device"] == device

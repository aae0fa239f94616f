"""Every function of NVIDIA's headers that has to do with memory is a row of entrypoints.def, or
left alone there with a reason.

Suspected is what has one of a few words in its name (of memory, and of code, which takes memory
when it is loaded), and what the headers document to give "out of memory".  The headers are those of
the build, and of each older and newer wheel of the runtime that can be had.
"""
import collections
import fnmatch
import os
import pathlib
import re
import subprocess
import sys

import pytest

from hosts import BUILD, ROOT

DEFINITION = (ROOT / "src/cuda/entrypoints.def").read_text()
WHEELS = BUILD / "cudart-wheels"
PACKAGES = {"11": "nvidia-cuda-runtime-cu11==11.8.89",
            "12.0": "nvidia-cuda-runtime-cu12==12.0.107", "12": "nvidia-cuda-runtime-cu12==12.9.79",
            "13": "nvidia-cuda-runtime==13.5.37"}
DRIVER_TYPES = ["cudaTypedefs.h", "cudaGLTypedefs.h", "cudaEGLTypedefs.h", "cudaVDPAUTypedefs.h"]
RUNTIME = ["cuda_runtime_api.h", "cuda_gl_interop.h", "cuda_egl_interop.h", "cuda_vdpau_interop.h"]

WORDS = """Access Advise Alloc Attach Bind Checkpoint Child Close Create Destroy Discard Export Free
    Func Function Functions Import Instantiate Ipc Kernel Kernels Launch Library Limit Load Malloc
    Managed Map Module Open Pool Prefetch Register Release Reserve Reset Retain Symbol Trim Unbind
    Unload Unmap Unregister Update Upload""".split()
CAPTURE = re.compile(r"(Begin|End)\w*[Cc]apture")
ADDS_NODE = re.compile(r"Graph(Add|\w*Set)(Mem(Alloc|Free)|Kernel)?Node")


def is_suspect(name):
    """Does the name, apart from its first word, contain one of those?"""
    words = re.findall(r"[A-Z][a-z0-9]*", name)
    return bool(set(words) & set(WORDS)) or any(p.search(name) for p in (CAPTURE, ADDS_NODE))


def without_version(name):
    return re.sub(r"_v\d+$|_pts[dz]$", "", re.sub(r"_pts[dz]$", "", name))


Row = collections.namedtuple("Row", "symbol base version suffix")
ROWS = [Row(*match) for match in
        re.findall(r"^DRIVER\((\w+), (\w+), (\d+), (\w*), \w+\)", DEFINITION, flags=re.M)]
NAMES = {row.base for row in ROWS} | set(re.findall(r"^RUNTIME\((\w+),", DEFINITION, flags=re.M))
ALONE = re.findall(r"^ALONE\(([\w*]+), \"(.+)\"\)$", DEFINITION, flags=re.M)


def is_alone(name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern, _ in ALONE)


def is_judged(name):
    return name in NAMES or without_version(name) in NAMES or is_alone(without_version(name))


def build_headers():
    folders = os.environ.get("CUDA_INCLUDE") or subprocess.run(
        [ROOT / "scripts/find-cuda-headers.sh", BUILD / "cuda-headers"], cwd=ROOT,
        capture_output=True, text=True, check=False).stdout
    if not folders.split():
        pytest.skip("no CUDA headers")
    return pathlib.Path(folders.split()[0])


def wheel_headers(major):
    """Those of a wheel from PyPI, fetched once."""
    folder = WHEELS / major
    if not list(folder.glob("nvidia/*/include/cuda.h")):
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps",
                               "--target", folder, PACKAGES[major]], capture_output=True,
                              text=True, timeout=300, check=False)
        if done.returncode != 0:
            pytest.skip(f"pip gave no {PACKAGES[major]}: {done.stderr.strip()[-200:]}")
    (header,) = folder.glob("nvidia/*/include/cuda.h")
    return header.parent


@pytest.fixture(params=["build", *PACKAGES])
def headers(request):
    return build_headers() if request.param == "build" else wheel_headers(request.param)


def text_of(headers, names):
    return "\n".join((headers / name).read_text() for name in names if (headers / name).exists())


def driver_types(headers):
    """(base name, version, suffix) of each typedef."""
    return set(re.findall(r"\*PFN_(cu[A-Z]\w*?)_v(\d+)(_pts[dz]|)\)", text_of(headers, DRIVER_TYPES)))


def driver_functions(headers):
    return {base for base, _, _ in driver_types(headers)}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def runtime_functions(headers):
    text = without_comments(text_of(headers, RUNTIME))
    return set(re.findall(r"CUDARTAPI\s+(cuda\w+)\s*\(", text))


def documented_to_run_out(headers):
    """Functions whose own comment names the error."""
    text = text_of(headers, ["cuda.h", *RUNTIME])
    comment = r"/\*\*((?:(?!\*/).)*)\*/\s*(?:#if[^\n]*\s+)?"
    function = r"(?:[\w()]+\s+)*?(?:CUDAAPI|CUDARTAPI)\s+(cu\w+)\s*\("
    found = {name for words, name in re.findall(comment + function, text, flags=re.S)
             if re.search(r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation", words)}
    assert len(found) > 60  # the pattern still fits the headers
    return found


def test_functions_about_memory_are_rows_or_left_alone_with_a_reason(headers):
    functions = driver_functions(headers) | runtime_functions(headers)
    assert len(functions) > 500
    assert [name for name in sorted(functions) if is_suspect(name) and not is_judged(name)] == []


def test_functions_that_may_run_out_of_memory_are_rows_or_left_alone_with_a_reason(headers):
    assert [name for name in sorted(documented_to_run_out(headers)) if not is_judged(name)] == []


def test_every_abi_of_a_hooked_function_is_a_row(headers):
    """As typedefs with a version and a suffix; the suffix _ptds is no stream's."""
    rows = {(row.base, row.version, row.suffix) for row in ROWS}
    bases = {row.base for row in ROWS}
    assert sorted({one for one in driver_types(headers) if one[0] in bases} - rows) == []


def test_what_is_left_alone_exists():
    """In one of the headers at least, and is no row."""
    every = [build_headers(), *(wheel_headers(major) for major in PACKAGES)]
    functions = set().union(*(driver_functions(one) | runtime_functions(one) for one in every))
    left = {without_version(name) for name in functions if not
            (name in NAMES or without_version(name) in NAMES)}
    assert [pattern for pattern, _ in ALONE if not fnmatch.filter(left, pattern)] == []


@pytest.mark.parametrize("major", [major for major in PACKAGES if major != "11"])
def test_rows_are_the_same_with_older_and_newer_headers(major):
    """Each is declared, by the headers or in newer.h, and its hook is of that type."""
    assert "#if CUDA_VERSION" not in DEFINITION
    hooks = [path for path in (ROOT / "src/shim").glob("hook_*.c") if path.stem != "hook_runtime"]
    done = subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-D__CUDA_API_VERSION_INTERNAL",
                           "-isystem", wheel_headers(major), "-fsyntax-only", "-Werror",
                           *hooks, ROOT / "src/cuda/entrypoint.c"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_row_is_in_a_header():
    every = [build_headers(), *(wheel_headers(major) for major in PACKAGES)]
    types = set().union(*(driver_types(one) for one in every))
    assert [row for row in ROWS if (row.base, row.version, row.suffix) not in types] == []

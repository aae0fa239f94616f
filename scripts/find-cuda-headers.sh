#!/usr/bin/env bash
# Print the folder of the CUDA headers (12.0 or newer), or say what to do.  One
# folder a line: the packages of CUDA 12 have theirs in two places.
#
#   find-cuda-headers.sh [--no-download] [DOWNLOAD_FOLDER]
#
# Looked at in this order: $CUDA_HOME, the folders of $CUDA_ROOTS (default
# /usr/local/cuda*, /opt/cuda), the toolkit that nvcc belongs to, an earlier
# download, python's nvidia packages; then the headers are fetched from PyPI
# into DOWNLOAD_FOLDER (default build/cuda-headers).
set -u

download=yes
if [ "${1:-}" = --no-download ]; then
    download=no
    shift
fi
folder=${1:-build/cuda-headers}
python=${PYTHON:-python3}

# Prints the folder, and that of crt/ where the wheels keep it apart, when it
# holds what is needed in a usable version; then the search is over.
accept() {
    local include=$1 compiler version
    for header in cuda.h cudaTypedefs.h cuda_runtime_api.h; do
        [ -r "$include/$header" ] || return 1
    done
    compiler=
    if [ ! -r "$include/crt/host_defines.h" ]; then
        compiler=$include/../../cuda_nvcc/include
        [ -r "$compiler/crt/host_defines.h" ] || return 1
    fi
    version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$include/cuda.h" | head -n 1)
    [ "${version:-0}" -ge 12000 ] || return 1
    (cd "$include" && pwd -P)
    [ -z "$compiler" ] || (cd "$compiler" && pwd -P)
    exit 0
}

from_nvcc() {
    local nvcc
    nvcc=$(command -v nvcc) || return 1
    nvcc=$(readlink -f "$nvcc")
    accept "${nvcc%/bin/nvcc}/include"
}

from_python() {
    local site
    "$python" - <<'PYTHON' 2>/dev/null | while read -r site; do
import site, sys
for folder in [*site.getsitepackages(), site.getusersitepackages(), *sys.path]:
    print(folder)
PYTHON
        for include in "$site"/nvidia/cu*/include "$site/nvidia/cuda_runtime/include"; do
            (accept "$include") && break 2
        done
    done
}

from_download() {
    [ "$download" = yes ] || return 1
    "$python" -m pip --version >/dev/null 2>&1 || return 1
    # The wheels of CUDA 13 first, then those of 12, which have other names.
    for packages in "nvidia-cuda-runtime nvidia-cuda-crt" "nvidia-cuda-runtime-cu12 nvidia-cuda-nvcc-cu12"; do
        rm -rf "$folder"
        # shellcheck disable=SC2086  # two words are two packages
        "$python" -m pip install -q --no-deps --disable-pip-version-check \
            --root-user-action=ignore --target "$folder" $packages >/dev/null 2>&1 || continue
        for include in "$folder"/nvidia/cu*/include "$folder/nvidia/cuda_runtime/include"; do
            accept "$include"
        done
    done
    return 1
}

[ -z "${CUDA_HOME:-}" ] || accept "$CUDA_HOME/include"
# shellcheck disable=SC2086  # a list of patterns
for root in ${CUDA_ROOTS:-/usr/local/cuda /usr/local/cuda-* /opt/cuda}; do
    accept "$root/include"
done
from_nvcc
for include in "$folder"/nvidia/cu*/include "$folder/nvidia/cuda_runtime/include"; do
    accept "$include"
done
found=$(from_python)
if [ -n "$found" ]; then
    echo "$found"
    exit 0
fi
from_download

cat >&2 <<'MESSAGE'
gpuoomshim: the CUDA headers (cuda.h, cudaTypedefs.h, cuda_runtime_api.h; 12.0 or newer) were not found.
  No GPU and no driver are needed to build, only the headers. Any of these helps:
    export CUDA_HOME=/path/to/cuda                  a toolkit that is installed elsewhere
    pip install nvidia-cuda-runtime nvidia-cuda-crt the headers alone, from PyPI
    make CUDA_INCLUDE=/path/to/include              a folder that holds the three files
MESSAGE
exit 1

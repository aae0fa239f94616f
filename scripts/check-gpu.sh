#!/usr/bin/env bash
# The hosts and the frameworks on this machine's GPU, with and without the
# library.  Without a GPU, exit status 77.  Builds nothing: `make check-gpu`
# does that first.
#
#   check-gpu.sh [pytest's arguments]      BUILD=dir  PYTHON=python3
set -u
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build}
python=${PYTHON:-python3}

has_gpu() {
    "$python" - <<'PYTHON'
import ctypes, sys
try:
    sys.exit(ctypes.CDLL("libcuda.so.1").cuInit(0) != 0)
except OSError:
    sys.exit(1)
PYTHON
}

if ! has_gpu; then
    echo "check-gpu: no GPU here: skipped"
    exit 77
fi
"$python" -m pytest --version >/dev/null 2>&1 || {
    echo "check-gpu: $python has no pytest (PYTHON=… chooses another)" >&2
    exit 1
}
exec "$python" -m pytest -q -p no:cacheprovider -rs --tb=short "${@:-tests/gpu}"

#!/usr/bin/env bash
# The hosts and the frameworks on this machine's GPU, with and without the
# library; the cheap and most telling ones first, each with a limit of its own.
# Without a GPU, exit status 77.  Builds nothing: `make check-gpu` does that first.
#
#   check-gpu.sh [--simulated] [pytest's arguments]
#       BUILD=dir  PYTHON=python3  GOS_GPU_LIMIT=660: seconds, what is left then is skipped
#   check-gpu.sh -m 'not two_gpus'    what one GPU is enough for
#   check-gpu.sh -m two_gpus          what needs two
#   check-gpu.sh -k rehearsal         by name
#   check-gpu.sh --simulated          what needs only the driver, on the simulated device
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

if [ "${1:-}" = --simulated ]; then
    shift
elif ! has_gpu; then
    echo "check-gpu: no GPU here: skipped"
    exit 77
fi
"$python" -m pytest --version >/dev/null 2>&1 || {
    echo "check-gpu: $python has no pytest (PYTHON=… chooses another)" >&2
    exit 1
}
[ -e "$BUILD/libgpuoomshim.so" ] || {
    echo "check-gpu: nothing is built in $BUILD (make all programs)" >&2
    exit 1
}
case " $* " in
*" tests/gpu"*) ;;
*) set -- "$@" tests/gpu ;;
esac
exec "$python" -m pytest -v -p no:cacheprovider -rfEs --tb=short --durations=15 "$@"

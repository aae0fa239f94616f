#!/usr/bin/env bash
# Run the benchmarks: against a driver that costs nothing, then against the real
# one if there is a GPU.  Figures of one run compare; those of two do not.
#
#   BUILD=dir  PYTHON=python3
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
python=${PYTHON:-python3}
shim=$(realpath "$build/libgpuoomshim.so")
path=${LD_LIBRARY_PATH:-}
GPUOOMSHIM_REPORT_DIR=$(mktemp -d)
export GPUOOMSHIM_REPORT_DIR
trap 'rm -rf "$GPUOOMSHIM_REPORT_DIR"' EXIT

part() {
    LD_PRELOAD=$shim "$python" tests/bench/bench.py "$shim" "$build/tests/bench" "$1"
}

echo "== against a driver that costs nothing ($(nproc) cores, $("$python" --version))"
export LD_LIBRARY_PATH=$PWD/$build/sim${path:+:$path}
for name in pairs threads live report; do
    GPUSIM_ZERO_COST=1 part $name || echo "$name: failed"
done
echo "== against the simulated GPU"
part survived || echo "survived: failed"
"$python" tests/bench/no_cuda.py "$shim"

export LD_LIBRARY_PATH=$path
if ! part survived >/dev/null 2>&1; then
    echo "== no GPU here: the real driver was not measured"
    exit 0
fi
echo "== against the real driver"
for name in pairs threads survived report; do
    part $name || echo "$name: failed"
done
if "$python" -c 'import torch' 2>/dev/null; then
    echo "torch training step, processes in turns"
    "$python" tests/bench/torch_step.py "$shim"
else
    echo "no torch here: the training step was not measured"
fi

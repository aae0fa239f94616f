#!/usr/bin/env bash
# Run the benchmarks: against a driver that costs nothing, then against the real
# one if there is a GPU.  Figures of one run compare; those of two do not.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
shim=$PWD/$build/libgpuoomshim.so
bench=$build/tests/bench/bench
cores=$(nproc)

hooked() {
    LD_PRELOAD=$shim "$@"
}

echo "== against a driver that costs nothing ($cores cores)"
path=${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH=$PWD/$build/sim GPUSIM_ZERO_COST=1
for stack in off native; do
    echo "-- GPUOOMSHIM_STACK=$stack"
    GPUOOMSHIM_STACK=$stack hooked "$bench" pairs
done
GPUOOMSHIM_STACK=off hooked "$bench" threads 16
GPUOOMSHIM_STACK=native hooked "$bench" live 1000000
scratch=$(mktemp -d)
GPUOOMSHIM_REPORT_DIR=$scratch hooked "$bench" report 100000
rm -rf "$scratch"

echo "== a process without CUDA"
starts() { # microseconds of one start, mean of 200
    local begin end
    begin=$(date +%s%N)
    for _ in $(seq 200); do "$@"; done
    end=$(date +%s%N)
    echo $(((end - begin) / 200000))
}
for _ in 1 2 3; do
    bare=$(starts env NOTHING= /bin/true)
    given=$(starts env LD_PRELOAD="$shim" /bin/true)
    echo "/bin/true through env: bare $bare us, with the shim $given us: added $((given - bare)) us"
done

unset GPUSIM_ZERO_COST
export LD_LIBRARY_PATH=$path
if "$bench" pairs >/dev/null 2>&1; then
    echo "== against the real driver"
    for stack in off both; do
        echo "-- GPUOOMSHIM_STACK=$stack"
        GPUOOMSHIM_STACK=$stack hooked "$bench" pairs
    done
    step=tests/bench/torch_step.py
    if "${PYTHON:-python3}" -c 'import torch' 2>/dev/null; then
        echo "-- torch training step, ms, in turns: bare / with the shim"
        for _ in 1 2 3; do
            echo "$("${PYTHON:-python3}" $step) / $(hooked "${PYTHON:-python3}" $step)"
        done
    fi
else
    echo "== no GPU here: the real driver was not measured"
fi

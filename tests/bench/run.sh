#!/usr/bin/env bash
# Run the benchmarks: against a driver that costs nothing, then against the real
# one if there is a GPU.  Figures of one run compare; those of two do not.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
shim=$PWD/$build/libgpuoomshim.so
bench=$build/tests/bench/bench
null=$PWD/$build/tests/bench/null
cores=$(nproc)

hooked() {
    LD_PRELOAD=$shim "$@"
}

echo "== against a driver that costs nothing ($cores cores)"
export LD_LIBRARY_PATH=$null${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for stack in off native; do
    echo "-- GPUOOMSHIM_STACK=$stack"
    GPUOOMSHIM_STACK=$stack hooked "$bench" pairs
done
GPUOOMSHIM_STACK=off hooked "$bench" threads 16
GPUOOMSHIM_STACK=native hooked "$bench" live 1000000

echo "== a process without CUDA"
starts() { # seconds for 200 starts of /bin/true
    local begin end
    begin=$(date +%s%N)
    for _ in $(seq 200); do "$@"; done
    end=$(date +%s%N)
    echo $(((end - begin) / 200000))
}
given=$(starts env LD_PRELOAD="$shim" /bin/true)
bare_env=$(starts env NOTHING= /bin/true)
echo "/bin/true through env: bare ${bare_env} us, with the shim ${given} us:" \
    "added $((given - bare_env)) us"

unset LD_LIBRARY_PATH
if "$bench" pairs >/dev/null 2>&1; then
    echo "== against the real driver"
    for stack in off both; do
        echo "-- GPUOOMSHIM_STACK=$stack"
        GPUOOMSHIM_STACK=$stack hooked "$bench" pairs
    done
else
    echo "== no GPU here: the real driver was not measured"
fi

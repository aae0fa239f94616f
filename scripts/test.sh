#!/usr/bin/env bash
# Everything that can be tested without a GPU: build, simulated GPU, unit,
# fault, stress and fuzz tests, the hosts under the preloaded library, checks.
# The last line counts: "N passed, N failed, N skipped".
#
#   test.sh [--no-install]      BUILD=dir  JOBS=n  PYTHON=python3
set -u
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build}
jobs=${JOBS:-$(nproc)}
log=$BUILD/test-logs
passed=0 failed=0 skipped=0

# shellcheck source=scripts/needs.sh
. scripts/needs.sh

add() {
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

finish() {
    echo
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ]
    exit
}

# step NAME COMMAND…: one test by its exit status; its output only when it fails.
step() {
    local name=$1 file
    shift
    file=$log/$(echo "$name" | tr ' /' '__').log
    if "$@" >"$file" 2>&1 </dev/null; then
        echo "ok     $name"
        add 1 0 0
        return 0
    fi
    echo "FAILED $name"
    tail -n 60 "$file" | sed 's/^/  | /'
    add 0 1 0
    return 1
}

# binaries KIND: all test binaries of that kind.
binaries() {
    local kind=$1 found counts=$log/counts
    found=$(make -s print-tests KIND="$kind")
    [ -n "$found" ] || return 0
    echo "-- $kind"
    # shellcheck disable=SC2086  # paths are words
    scripts/run-tests.sh --counts "$counts" $found
    # shellcheck disable=SC2046
    add $(cat "$counts")
}

# The simulated GPU's own tests: what they prove, every test on it stands on.
simulator() {
    echo "-- simulated GPU"
    make -s "$BUILD/sim/selftest" >"$log/selftest-build.log" 2>&1
    LD_LIBRARY_PATH=$BUILD/sim scripts/run-tests.sh --counts "$log/counts" "$BUILD/sim/selftest"
    # shellcheck disable=SC2046
    add $(cat "$log/counts")
}

integration() {
    local summary=$log/integration.log
    echo "-- integration"
    timeout -k 10 600 "$python" -m pytest -q -p no:cacheprovider -rfEs --tb=short \
        tests/integration >"$summary" 2>&1 </dev/null
    local status=$?
    number() { tail -n 3 "$summary" | grep -oE "[0-9]+ $1" | tail -n 1 | grep -oE '^[0-9]+' || echo 0; }
    add "$(number passed)" $(($(number failed) + $(number 'errors?'))) "$(number skipped)"
    if [ $status -ne 0 ]; then
        [ $(($(number failed) + $(number 'errors?'))) -gt 0 ] || add 0 1 0
        tail -n 400 "$summary"
    else
        tail -n 1 "$summary"
    fi
}

if [ "${1:-}" != --no-install ]; then
    need_build
    need 'has_header cmocka.h' libcmocka-dev
    install_missing || { add 0 1 0; finish; }
fi
mkdir -p "$log"
python=$(find_python "$BUILD" pytest jsonschema) || { echo "no python with pytest" >&2; add 0 1 0; finish; }

echo "-- build"
step "build" make -j"$jobs" all || finish
step "build the simulated GPU and the hosts" make -j"$jobs" sim programs || finish
step "build the tests" make -k -j"$jobs" tests
for kind in unit fault stress fuzz; do
    binaries "$kind"
done
simulator
integration
echo "-- checks"
step "check-layers" make check-layers
step "check-exports" make check-exports
step "check-readme" make check-readme PYTHON="$python"
step "check-install" make check-install
if command -v clang-format-14 >/dev/null; then
    step "format-check" make format-check
else
    echo "skip   format-check (no clang-format-14)"
    add 0 0 1
fi
finish

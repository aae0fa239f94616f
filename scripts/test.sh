#!/usr/bin/env bash
# Everything that can be tested without a GPU: build, simulated GPU, unit,
# fault, stress and fuzz tests, the hosts under the preloaded library, the same
# under sanitizers and for aarch64, checks.  The last line counts:
# "N passed, N failed, N skipped".
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

log_of() {
    echo "$log/$(echo "$1" | tr ' /' '__').log"
}

# step NAME COMMAND…: one test by its exit status; its output only when it fails.
# A command that says ": skipped:" has done nothing.
step() {
    local name=$1 file
    shift
    file=$(log_of "$name")
    if "$@" >"$file" 2>&1 </dev/null; then
        if grep ': skipped:' "$file"; then
            add 0 0 1
        else
            echo "ok     $name"
            add 1 0 0
        fi
        return 0
    fi
    echo "FAILED $name"
    tail -n 60 "$file" | sed 's/^/  | /'
    add 0 1 0
    return 1
}

# begin NAME COMMAND…: in the background; taken up by: counted NAME finished NAME
declare -A in_background
begin() {
    local name=$1 file
    file=$(log_of "begun $1")
    shift
    "$@" >"$file" 2>&1 </dev/null &
    in_background[$name]=$!
}

finished() {
    local status
    wait "${in_background[$1]}"
    status=$?
    cat "$(log_of "begun $1")"
    return $status
}

# counted NAME COMMAND…: tests that end with "N passed, N failed, N skipped", maybe
# several times.  One that says ": skipped:" has done nothing.
counted() {
    local name=$1 file status begun=$SECONDS passed_before=$passed failed_before=$failed
    shift
    file=$(log_of "$name")
    echo "-- $name"
    "$@" >"$file" 2>&1 </dev/null
    status=$?
    while read -r p f s; do
        add "$p" "$f" "$s"
    done < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$file")
    if grep ': skipped:' "$file"; then
        add 0 0 1
    elif [ $status -ne 0 ]; then
        [ $failed -ne "$failed_before" ] || add 0 1 0 # it did not come to its tests
        tail -n 300 "$file" | sed 's/^/  | /'
    fi
    echo "$((passed - passed_before)) passed, $((failed - failed_before)) failed," \
        "$((SECONDS - begun)) s"
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

install=
if [ "${1:-}" != --no-install ]; then
    install=--install
    need_build
    need 'has_header cmocka.h' libcmocka-dev
    need 'command -v c++' g++
    install_missing || { add 0 1 0; finish; }
fi
mkdir -p "$log"
PYTHON=$(find_python "$BUILD" pytest jsonschema pytest-xdist) || { echo "no python with pytest" >&2; add 0 1 0; finish; }
export PYTHON

echo "-- build"
[ -z "$install" ] || begin "pythons" scripts/fetch-pythons.sh
step "build" make -j"$jobs" all || finish
step "build the simulated GPU and the hosts" make -j"$jobs" sim programs || finish
step "build the tests" make -k -j"$jobs" tests
for kind in unit fault stress fuzz; do
    binaries "$kind"
done
matrix=$BUILD/tests/unit/test_diagnose_matrix
[ ! -x "$matrix" ] || "$matrix" 2>/dev/null | grep '^|'
simulator
# The hosts mostly wait for time to pass, so the emulator can have the processor.
begin "aarch64" env BUILD="$BUILD-aarch64" scripts/check-aarch64.sh $install
[ -z "$install" ] || finished "pythons" >/dev/null
counted "integration" env GOS_HOSTS_LIMIT=1200 scripts/run-hosts.sh tests/integration
counted "address and undefined-behaviour sanitizers" make -j"$jobs" asan
counted "thread sanitizer" make -j"$jobs" tsan
counted "aarch64" finished "aarch64"
echo "-- checks"
step "check-layers" make check-layers
step "check-exports" make check-exports
step "check-glibc228" make check-glibc228
step "check-readme" make check-readme
step "check-install" make check-install
step "format-check" make format-check
step "lint" make lint
finish

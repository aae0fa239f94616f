#!/usr/bin/env bash
# Everything for aarch64, built by Debian's cross compiler and run by qemu-user:
# the unit, fault and stress tests, look-ups and hosts under the preloaded
# library.  Without the tools it says which are missing and ends with 77.
#
#   check-aarch64.sh [--install]
#
# --install gets the tools with apt; libraries to link the tests with are
# fetched from Debian into the build folder in any case, installed nowhere.
# BUILD=dir (default build-aarch64)  JOBS=n  PYTHON=python3 (with pytest)
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build-aarch64}
prefix=aarch64-linux-gnu-
system=/usr/aarch64-linux-gnu
packages=$build/packages
sysroot=$(realpath -m "$build")/sysroot
# libunwind, so that not only libgcc's unwinder is tried.
wanted="libcmocka-dev libcmocka0 libjansson-dev libjansson4 libdw-dev libelf-dev libunwind8 liblzma5"

# shellcheck source=scripts/needs.sh
. scripts/needs.sh

skip() {
    echo "check-aarch64: skipped: $*"
    exit 77
}

have_tools() {
    missing_packages=
    need "command -v ${prefix}gcc" gcc-aarch64-linux-gnu
    need "command -v ${prefix}g++" g++-aarch64-linux-gnu
    need "[ -e $system/lib/ld-linux-aarch64.so.1 ]" libc6-dev-arm64-cross
    need 'command -v qemu-aarch64' qemu-user
    [ -z "$missing_packages" ]
}

# apt with lists of its own, of the other machine, that leaves the system's alone.
other_apt() {
    mkdir -p "$packages/lists" "$packages/cache/archives/partial"
    : >"$packages/status"
    (cd "$packages" && apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
        -o Dir::State::Lists="$PWD/lists" -o Dir::State::status="$PWD/status" \
        -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root "$@")
}

fetch_libraries() {
    [ "$(cat "$sysroot/complete" 2>/dev/null)" != "$wanted" ] || return 0
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
    # shellcheck disable=SC2086  # packages are words
    other_apt update >/dev/null 2>&1 && other_apt download $wanted >/dev/null 2>&1 || return 1
    for package in "$packages"/*.deb; do
        dpkg -x "$package" "$sysroot" || return 1
    done
    rm -rf "$packages"
    echo "$wanted" >"$sysroot/complete"
}

build_all() {
    make -s -j"${JOBS:-$(nproc)}" BUILD="$build" CC=${prefix}gcc CXX=${prefix}g++ \
        CPPFLAGS="-isystem $sysroot/usr/include" LDFLAGS="-L$libraries" "$@"
}

if ! have_tools; then
    [ "${1:-}" != --install ] || install_missing || skip "cannot install$missing_packages"
    have_tools || skip "missing:$missing_packages"
fi
fetch_libraries || skip "no Debian to fetch libcmocka, libjansson, libdw and libunwind of arm64 from"
libraries=$sysroot/usr/lib/aarch64-linux-gnu

build_all all sim programs tests check-exports || exit 1
binaries=
for kind in unit fault stress fuzz; do
    binaries="$binaries $(build_all print-tests KIND=$kind)"
done
# Drafts belong to processes that end and start again, which qemu does not emulate.
binaries=$(echo "$binaries" | tr ' ' '\n' | grep -vE '/(test_report_draft|fault_draft)$')
export GOS_EMULATOR="qemu-aarch64 -L $system -E LD_LIBRARY_PATH=$libraries:$sysroot/lib/aarch64-linux-gnu"
status=0
# shellcheck disable=SC2086  # paths are words
scripts/run-tests.sh $binaries || status=1
# Left out: what qemu does not emulate (a limit of address space, starting
# another program of its kind), and what takes a minute there.
left_out='address_space or other_process or keeps_more or ctypes or jemalloc or leak_in_python'
left_out="$left_out or accuses_nobody or owner_of_what_is_mapped or has_only_a_context"
left_out="$left_out or is_not_the_cause or several_callers"
BUILD=$build GOS_HOSTS_LIMIT=1500 scripts/run-hosts.sh tests/integration/test_lookup.py \
    tests/integration/test_scenarios.py tests/integration/test_tracking.py \
    tests/integration/test_rows.py tests/integration/test_differential.py \
    tests/integration/test_books.py \
    -k "not ($left_out)" ||
    status=1
exit $status

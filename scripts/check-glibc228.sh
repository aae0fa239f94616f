#!/usr/bin/env bash
# Link the library's objects against glibc 2.28, whose symbols zig brings along:
# what does not exist there is an undefined reference.  Without zig, and where
# it cannot be fetched from PyPI into the build folder, the exit status is 77.
#
#   check-glibc228.sh SCRATCH_FOLDER LINK_FLAG… OBJECT…      PYTHON=python3
set -u
scratch=${1:?usage: check-glibc228.sh SCRATCH_FOLDER OBJECT…}
shift
output=$scratch/libgpuoomshim.so
python=${PYTHON:-python3}
machine=$(uname -m)

find_zig() {
    command -v zig && return
    local zig=$scratch/ziglang/ziglang/zig
    [ -x "$zig" ] || "$python" -m pip install -q --no-deps --disable-pip-version-check \
        --root-user-action=ignore --target "$scratch/ziglang" ziglang >/dev/null 2>&1
    [ -x "$zig" ] && echo "$zig"
}

mkdir -p "$scratch"
zig=$(find_zig) || {
    echo "check-glibc228: skipped: no zig, and none from PyPI"
    exit 77
}
export ZIG_GLOBAL_CACHE_DIR=$scratch/zig-cache ZIG_LOCAL_CACHE_DIR=$scratch/zig-cache
"$zig" cc -target "$machine-linux-gnu.2.28" -shared -Wl,-z,defs "$@" -o "$output" || exit 1
newest=$(nm -D --undefined-only "$output" | sed -n 's/.*@\{1,2\}GLIBC_\([0-9.]*\)$/\1/p' | sort -V | tail -n 1)
echo "check-glibc228: ok (links with glibc 2.28; the newest symbol is of $newest)"

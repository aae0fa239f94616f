#!/usr/bin/env bash
# Install what is missing, build, and let a small training program run out of
# GPU memory under the library: on the GPU of this machine when it has one and
# torch, on the simulated GPU otherwise.  Shows the first screen of the report.
#
#   demo.sh      BUILD=dir  JOBS=n  GPUOOMSHIM_*=…
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p "${BUILD:-build}" && build=$(cd "${BUILD:-build}" && pwd) || exit 1
jobs=${JOBS:-$(nproc)}

# shellcheck source=scripts/needs.sh
. scripts/needs.sh

die() {
    echo "demo: $*" >&2
    exit 1
}

# A python that can train on a real GPU, or nothing.
torch_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 /usr/bin/python3; do
        [ -n "$candidate" ] || continue
        timeout 120 "$candidate" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' \
            >/dev/null 2>&1 && echo "$candidate" && return
    done
}

valid() { # is the JSON report a report, by the schema where python can check it
    "$1" - "$2" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["schema"] == "gpuoomshim.report/1" and report["kind"] == "failure", "not a report"
try:
    import jsonschema
except ImportError:
    sys.exit(0)
jsonschema.validate(report, json.load(open("src/report/report.schema.json")))
PYTHON
}

need_build
install_missing || exit 1
echo "demo: building in $build (the first time takes a minute)"
make -j"$jobs" BUILD="$build" WERROR=0 all >/dev/null || die "the build failed"

library=$build/libgpuoomshim.so
reports=${GPUOOMSHIM_REPORT_DIR:-$build/demo}
mkdir -p "$reports" || die "$reports cannot be made"
rm -f "$reports"/gpuoomshim.*.txt "$reports"/gpuoomshim.*.json
export GPUOOMSHIM_REPORT_DIR=$reports

program=tests/programs/train_demo.py
python=$(torch_python)
if [ -n "$python" ]; then
    echo "demo: running $program with torch on this machine's GPU"
    LD_PRELOAD=$library "$python" $program
else
    python=$(command -v python3)
    make -j"$jobs" BUILD="$build" WERROR=0 sim >/dev/null || die "the simulated GPU did not build"
    echo "demo: no GPU with torch here: running $program on the simulated GPU (16 GiB)"
    LD_LIBRARY_PATH=$build/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} LD_PRELOAD=$library \
        "$python" $program
fi
status=$?
[ $status -eq 3 ] || die "the program was to run out of memory (exit 3) but ended with $status"

text=$(find "$reports" -name 'gpuoomshim.*.txt' | sort | tail -n 1)
json=${text%.txt}.json
[ -n "$text" ] && [ -s "$text" ] || die "no report in $reports"
valid "$python" "$json" || die "$json is not valid"

echo
echo "---- the first screen of the report ----"
sed -n '/^VERDICT/q;p' "$text"
echo "----------------------------------------"
echo "whole report   $text"
echo "for programs   $json"
echo "try            $build/gpuoomshim show $json"

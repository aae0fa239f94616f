#!/usr/bin/env bash
# Run tests of hosts (pytest) and count like run-tests.sh.  What failed is shown,
# with all that pytest says of it.
#
#   run-hosts.sh [--counts FILE] [pytest's arguments]      PYTHON=python3  BUILD=dir
#
# FILE gets "passed failed skipped".  See tests/hosts.py for GOS_EMULATOR and
# GOS_LOAD_PATHS.  GOS_HOSTS_LIMIT: seconds for all (default 600).  GOS_HOSTS_JOBS: so
# many at once, where pytest-xdist is installed: hosts mostly wait (default 4).
set -u
cd "$(dirname "$0")/.." || exit 1
counts=/dev/null
if [ "${1:-}" = --counts ]; then
    counts=$2
    shift 2
fi
summary=$(mktemp) || exit 1
trap 'rm -f "$summary"' EXIT

number() {
    tail -n 3 "$summary" | grep -oE "[0-9]+ $1" | tail -n 1 | grep -oE '^[0-9]+' || echo 0
}

at_once=()
if "${PYTHON:-python3}" -c 'import xdist' 2>/dev/null; then
    at_once=(-n "${GOS_HOSTS_JOBS:-4}")
fi
timeout -k 10 "${GOS_HOSTS_LIMIT:-600}" "${PYTHON:-python3}" -m pytest -q -p no:cacheprovider \
    "${at_once[@]}" -rfEs --tb=short "$@" >"$summary" 2>&1 </dev/null
status=$?
failed=$(($(number failed) + $(number 'errors?')))
[ $status -eq 0 ] || [ $failed -gt 0 ] || failed=1 # could not start, or took too long
echo "$(number passed) $failed $(number skipped)" >"$counts"
if [ $status -ne 0 ]; then
    tail -n 400 "$summary"
fi
[ "$counts" != /dev/null ] ||
    echo "$(number passed) passed, $failed failed, $(number skipped) skipped"
exit $status

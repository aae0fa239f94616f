#!/usr/bin/env bash
# Run test binaries and count: each cmocka test is one, a program that is no
# cmocka program is one by its exit status (77: skipped).  What a failing
# binary printed is shown.
#
#   run-tests.sh [--counts FILE] BINARY…
#
# FILE gets "passed failed skipped" of this run.  GOS_TEST_LIMIT: seconds for
# one binary (default 120).  GOS_EMULATOR: what runs binaries of another machine.
set -u
counts=/dev/null
if [ "${1:-}" = --counts ]; then
    counts=$2
    shift 2
fi
passed=0 failed=0 skipped=0
output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT

count() {
    grep -cE "$1" "$output"
}

for binary in "$@"; do
    # shellcheck disable=SC2086  # an emulator is words
    CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 "${GOS_TEST_LIMIT:-120}" ${GOS_EMULATOR:-} "$binary" >"$output" 2>&1 </dev/null
    status=$?
    good=$(count '^ok [0-9]')
    skip=$(count '^(not )?ok [0-9]+ *(- .*)?# SKIP')
    bad=$(count '^not ok [0-9]')
    good=$((good - $(count '^ok [0-9]+ *(- .*)?# SKIP')))
    bad=$((bad - $(count '^not ok [0-9]+ *(- .*)?# SKIP')))
    if [ $((good + skip + bad)) -eq 0 ]; then
        case $status in
        0) good=1 ;;
        77) skip=1 ;;
        *) bad=1 ;;
        esac
    elif [ $status -ne 0 ] && [ $bad -eq 0 ]; then
        bad=1 # died on the way, or a group's set-up failed
    fi
    verdict=ok
    [ $bad -eq 0 ] || verdict=FAILED
    printf '%-6s %s: %d passed, %d failed, %d skipped\n' "$verdict" "$(basename "$binary")" \
        "$good" "$bad" "$skip"
    if [ $bad -ne 0 ]; then
        echo "  exit status $status, output:"
        sed 's/^/  | /' "$output" | tail -n 200
    fi
    passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skip))
done
echo "$passed $failed $skipped" >"$counts"
[ "$counts" != /dev/null ] || echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]

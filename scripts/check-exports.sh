#!/usr/bin/env bash
# What a process gets from the library when it is preloaded, and nothing else:
#   - it exports exactly the entry points of src/cuda/entrypoints.def and
#     src/shim/torch_word.def, dlsym, dlvsym, dlclose and the functions of the
#     public header, all without a version
#   - it needs libc alone, no symbol of a glibc newer than 2.28
#   - one light constructor runs when it is loaded
#
#   CC=… CPPFLAGS=… check-exports.sh LIBRARY
set -u
library=${1:?usage: check-exports.sh LIBRARY}
[ -r "$library" ] || { echo "check-exports: no $library" >&2; exit 1; }
here=$(cd "$(dirname "$0")/.." && pwd)
compiler=${CC:-cc}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
wrong=0

complain() {
    echo "check-exports: $*" >&2
    wrong=1
}

expected() {
    {
        echo '#include <cuda.h>'
        echo '#define DRIVER(symbol, base, version, suffix, role) entry symbol'
        echo '#define RUNTIME(symbol, role) entry symbol'
        echo "#include \"$here/src/cuda/entrypoints.def\""
        echo '#define TORCH_WORD(row, symbol, tells) entry symbol'
        echo "#include \"$here/src/shim/torch_word.def\""
    } >"$scratch/entries.c"
    # shellcheck disable=SC2086  # flags are words
    "$compiler" -E -P $CPPFLAGS "$scratch/entries.c" | sed -n 's/^.*entry \([A-Za-z0-9_]*\).*/\1/p' \
        | sort >"$scratch/entries"
    [ -s "$scratch/entries" ] || complain "no entry points could be read"
    cat "$scratch/entries"
    printf 'dlclose\ndlsym\ndlvsym\n'
    grep -o '\bgpuoomshim_[a-z_]*(' "$here/include/gpuoomshim.h" | tr -d '('
}

expected | sort -u >"$scratch/expected"
nm -D --defined-only "$library" | awk '{print $3}' | sort -u >"$scratch/exported"
if ! diff "$scratch/expected" "$scratch/exported" >"$scratch/difference"; then
    complain "exports differ (< should be there, > should not):"
    cat "$scratch/difference" >&2
fi

needed=$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for name in $needed; do
    case $name in
    libc.so.6 | ld-linux*.so.*) ;;
    *) complain "needs $name" ;;
    esac
done

newest=$(nm -D --undefined-only "$library" | sed -n 's/.*@\{1,2\}GLIBC_\([0-9.]*\)$/\1/p' | sort -V | tail -n 1)
if [ "$(printf '%s\n2.28\n' "${newest:-0}" | sort -V | tail -n 1)" != 2.28 ]; then
    complain "needs a glibc newer than 2.28:"
    nm -D --undefined-only "$library" | awk -F'GLIBC_' 'NF > 1 && $2 + 0 == 2 {split($2, v, "."); if (v[2] > 28) print "  " $0}' >&2
fi

# crtbeginS.o brings frame_dummy; the second entry is ours.
entries=$(readelf -SW "$library" | sed -n 's/^.*\.init_array *INIT_ARRAY *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\) .*/\1/p')
count=$((0x${entries:-0} / 8))
[ "$count" -le 2 ] || complain "$count constructors: frame_dummy and one light one are allowed"

readelf -lW "$library" | grep -q 'GNU_STACK.*RWE' && complain "its stack is executable"

[ $wrong -eq 0 ] && echo "check-exports: ok ($(wc -l <"$scratch/exported") symbols, glibc ${newest:-none})"
exit $wrong

#!/usr/bin/env bash
# Install into a scratch folder, then be a user of what lies there: compile and
# link a program against the header in C and in C++, run it with and without
# the library, and start the command.  And build with half a compiler.
#
#   CC=… check-install.sh SCRATCH_FOLDER
set -eu
scratch=${1:?usage: check-install.sh SCRATCH_FOLDER}
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$scratch"
scratch=$(cd "$scratch" && pwd)
compiler=${CC:-cc}
root=$scratch/root/usr

rm -rf "$scratch/root"
make -s -C "$here" install DESTDIR="$scratch/root" PREFIX=/usr
for file in lib/libgpuoomshim.so bin/gpuoomshim include/gpuoomshim.h share/gpuoomshim; do
    [ -e "$root/$file" ] || { echo "check-install: $file was not installed" >&2; exit 1; }
done
ls "$root"/share/gpuoomshim/*.json >/dev/null

cat >"$scratch/user.c" <<'PROGRAM'
#include <gpuoomshim.h>
#include <stddef.h>
#include <stdio.h>

int main(void)
{
    int present = &gpuoomshim_live_bytes != NULL;
    printf("present %d live %d\n", present, present ? (int)gpuoomshim_live_bytes(0) : 0);
    return 0;
}
PROGRAM
cp "$scratch/user.c" "$scratch/user.cc"

answers() { # program, expected output
    local answer
    answer=$("$@" 2>&1)
    [ "$answer" = "$expected" ] || { echo "check-install: '$*' said '$answer'" >&2; exit 1; }
}

warnings="-Wall -Wextra -Wno-address -Werror"
# shellcheck disable=SC2086  # flags are words
"$compiler" -std=c11 -pedantic $warnings -I"$root/include" -o "$scratch/user_c" "$scratch/user.c"
users=$scratch/user_c
if command -v g++ >/dev/null; then
    # shellcheck disable=SC2086
    g++ -std=c++11 -pedantic $warnings -I"$root/include" -o "$scratch/user_cc" "$scratch/user.cc"
    users="$users $scratch/user_cc"
fi
for user in $users; do
    expected="present 0 live 0" answers "$user"
    expected="present 1 live 0" answers env LD_PRELOAD="$root/lib/libgpuoomshim.so" "$user"
done
"$root/bin/gpuoomshim" options >/dev/null

# A compiler that compiles for link-time optimisation but cannot link so: the build does without.
cat >"$scratch/half-cc" <<COMPILER
#!/usr/bin/env bash
case " \$* " in *" -c "* | *" -v "*) ;; *" -flto"*) exit 1 ;; esac
exec $compiler "\$@"
COMPILER
chmod +x "$scratch/half-cc"
if make -n -C "$here" BUILD="$scratch/none" CC="$scratch/half-cc" all 2>/dev/null | grep -q -e -flto; then
    echo "check-install: the build wants -flto from a compiler that cannot link so" >&2
    exit 1
fi
echo "check-install: ok"

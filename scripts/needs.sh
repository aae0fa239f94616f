# Sourced by demo.sh and test.sh: what building and testing need, and how to get
# it.  Installs with apt where that is possible; says exactly what is missing
# where it is not.  Does nothing where nothing is missing.

# need TEST PACKAGE…: remember the packages when the test fails.
missing_packages=
need() {
    local test=$1
    shift
    eval "$test" >/dev/null 2>&1 || missing_packages="$missing_packages $*"
}

has_header() {
    printf '#include <stddef.h>\n#include <stdarg.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <%s>\n' "$1" |
        ${CC:-cc} -E -x c - >/dev/null 2>&1
}

has_library() {
    python3 -c "import ctypes; ctypes.CDLL('$1')"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

can_apt() {
    command -v apt-get >/dev/null || return 1
    [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null
}

install_missing() {
    [ -n "$missing_packages" ] || return 0
    echo "missing:$missing_packages"
    if ! can_apt; then
        echo "These packages (Debian's names) are missing and cannot be installed from here:" >&2
        echo "   $missing_packages" >&2
        echo "Install them, or what your system calls them, and start this again." >&2
        return 1
    fi
    # An old package list may name versions that are gone: install, else refresh and install.
    local log
    log=$(mktemp)
    apt_install() {
        # shellcheck disable=SC2086  # packages are words
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q $missing_packages \
            >>"$log" 2>&1 </dev/null
    }
    if ! apt_install && ! { as_root apt-get update -q >>"$log" 2>&1 && apt_install; }; then
        tail -n 5 "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
    missing_packages=
}

# What every build needs.
need_build() {
    need 'command -v make' make
    need 'command -v ${CC:-cc} && echo "int main(void){return 0;}" | ${CC:-cc} -x c -o /dev/null -' \
        gcc libc6-dev
    need 'command -v python3' python3
    need 'has_header uthash.h' uthash-dev
    need 'has_header jansson.h' libjansson-dev
    need 'has_header elfutils/libdwfl.h' libdw-dev
    need 'has_library libunwind.so.8' libunwind8
}

# A python with the modules, on stdout: the system's, any other, or a new venv
# in the build folder.
find_python() {
    local build=$1 candidate
    shift
    local imports="import $(echo "$*" | sed 's/pytest-xdist/xdist/; s/ /, /g')"
    for candidate in "${PYTHON:-}" /usr/bin/python3 python3 "$build/venv/bin/python3"; do
        if [ -n "$candidate" ] && "$candidate" -c "$imports" >/dev/null 2>&1; then
            echo "$candidate"
            return 0
        fi
    done
    if can_apt; then
        missing_packages=$(printf ' python3-%s' "$@")
        install_missing >&2 && /usr/bin/python3 -c "$imports" 2>/dev/null && {
            echo /usr/bin/python3
            return 0
        }
    fi
    python3 -m venv "$build/venv" >&2 &&
        "$build/venv/bin/python3" -m pip install -q --disable-pip-version-check "$@" >&2 &&
        echo "$build/venv/bin/python3"
}

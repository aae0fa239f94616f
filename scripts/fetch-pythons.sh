#!/usr/bin/env bash
# CPythons that this system does not have, unpacked from Debian's coming release
# into the build folder and installed nowhere: the newest version whose frames are
# known, and one that is not.  Each brings the C library that it wants, and is
# started through its loader:
#
#   BUILD/pythons/VERSION/bin/python3    starts it, or what it is given: python3 --run PROGRAM…
#   BUILD/pythons/VERSION/lib            libpythonVERSION.so.1.0
#
#   fetch-pythons.sh      BUILD=dir  SUITE=forky
#
# What cannot be had is left out; tests that want it are skipped.
set -u
cd "$(dirname "$0")/.." || exit 1
suite=${SUITE:-forky}
mirror=http://deb.debian.org/debian
keys=/usr/share/keyrings/debian-archive-keyring.gpg
pythons=$(realpath -m "${BUILD:-build}")/pythons
packages=$pythons/packages

leave() {
    rm -rf "$packages"
    echo "fetch-pythons: skipped: $*"
    exit 0
}

# apt with a source and lists of its own, that leaves the system's alone.
other_apt() {
    (cd "$packages" && timeout 120 apt-get -q -o Dir::State::Lists="$packages/lists" \
        -o Dir::State::status="$packages/status" -o Dir::Cache="$packages/cache" \
        -o Dir::Etc::SourceList="$packages/sources.list" -o Dir::Etc::SourceParts="$packages/none" \
        -o Acquire::Languages=none -o APT::Sandbox::User=root "$@")
}

read_lists() {
    mkdir -p "$packages/lists" "$packages/cache/archives/partial" "$packages/none"
    : >"$packages/status"
    echo "deb [signed-by=$keys] $mirror $suite main" >"$packages/sources.list"
    other_apt update
}

# starter FOLDER: a command that runs the interpreter there with the libraries it came with.
starter() {
    local folder=$1 loader
    loader=$(find "$folder/root/usr/lib" -name 'ld-linux-*.so.*' | head -n 1)
    mkdir -p "$folder/bin"
    cat >"$folder/bin/python3" <<END
#!/bin/sh
root=$folder/root/usr
libraries=$(dirname "$loader")
system=$(dirname "$(realpath "$(${CC:-cc} -print-file-name=libc.so.6)")")
if [ "\${1:-}" = --run ]; then shift; else set -- "\$root/bin/python$version" "\$@"; fi
PYTHONHOME=\$root exec "$loader" --library-path \\
    "\${LD_LIBRARY_PATH:+\$LD_LIBRARY_PATH:}\$libraries:\$system" "\$@"
END
    chmod +x "$folder/bin/python3"
    ln -s "$(dirname "$loader")" "$folder/lib"
}

fetch() {
    local version=$1 folder=$pythons/$1
    rm -f "$packages"/*.deb
    mkdir -p "$folder"
    other_apt download "python$version-minimal" "libpython$version-minimal" \
        "libpython$version-stdlib" "libpython$version" libc6 libffi8 libexpat1 zlib1g || return 1
    for package in "$packages"/*.deb; do
        dpkg-deb -x "$package" "$folder/root" || return 1
    done
    starter "$folder" && "$folder/bin/python3" -c 'import ctypes'
}

[ ! -e "$pythons/complete" ] || exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null && [ -e "$keys" ] ||
    leave "no Debian to fetch them with"
rm -rf "$pythons"
read_lists || leave "no lists of $suite"
for version in 3.14 3.15; do
    fetch "$version" || { rm -rf "${pythons:?}/$version"; echo "fetch-pythons: no $version"; }
done
rm -rf "$packages"
touch "$pythons/complete"

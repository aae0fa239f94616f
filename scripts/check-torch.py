#!/usr/bin/env python3
"""Can torch's own word come?  Looks at a torch without running it.

    check-torch.py [WHEEL | FOLDER]     default: the torch of this python

FOLDER is an unpacked wheel, site-packages, or torch's own.  One line for each
finding; exit status 1 where a word could not come, 77 where there is no torch.
A word comes where libc10_cuda.so takes the function from outside (by a
relocation against a name of src/shim/torch_word.def that it does not define),
and libc10.so defines it for everybody.

Seen: 1.13.1, 2.3.1, 2.8.0, 2.11.0 and 2.15.0 of PyPI (x86-64, CUDA 11.7 to 13.2).
In each, libc10_cuda.so calls both functions through its PLT, by a call and not by
a jump; libc10.so and libtorch_cpu.so tell of host memory likewise, and neither
library is linked with -Bsymbolic.  From 2.8.0 on, libc10.so has two functions
that end with a jump into its PLT: there the return address is that of the
caller's caller, still in libc10.so.
"""
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBRARIES = ("libc10.so", "libc10_cuda.so")


def known_words():
    """{symbol: what it tells}"""
    text = (ROOT / "src/shim/torch_word.def").read_text(encoding="utf-8")
    return dict(re.findall(r"^TORCH_WORD\(\w+, (\w+), (\w+)\)", text, flags=re.M))


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *map(str, arguments)], capture_output=True, text=True,
                          check=True).stdout


def symbols(library):
    """{name: (is defined, visibility)} of those that could be torch's word."""
    rows = re.findall(r"^\s*\d+: \w+ +\w+ \w+ +\w+ +(\w+) +.*?(\w+) (_ZN3c10\d+report\w+ToProfiler\w+)",
                      readelf("--dyn-syms", library), flags=re.M)
    return {name: (section != "UND", visibility) for visibility, section, name in rows}


def relocations(library):
    """{name: type}"""
    rows = re.findall(r"(R_\w+_(?:JUMP_SLOT|JUMP_SL|GLOB_DAT)\w*)\s+\w+ (_ZN3c10\d+report\w+)",
                      readelf("-r", library))
    return {name: kind for kind, name in rows}


def is_symbolic(library):
    return re.search(r"\(SYMBOLIC\)|\(FLAGS\).*SYMBOLIC", readelf("-d", library)) is not None


def findings(folder):
    """(is well, line) one after the other."""
    words, defined = known_words(), symbols(folder / LIBRARIES[0])
    used, taken = symbols(folder / LIBRARIES[1]), relocations(folder / LIBRARIES[1])
    for library in LIBRARIES:
        bad = is_symbolic(folder / library)
        yield not bad, f"{library} is {'' if bad else 'not '}linked with -Bsymbolic"
    for tells in sorted(set(words.values())):
        names = [name for name in words if words[name] == tells and name in used]
        if not names:
            yield False, f"{tells}: libc10_cuda.so takes no function that is known here"
        for name in names:
            yield name in taken and not used[name][0], \
                f"{tells}: libc10_cuda.so takes {name} by {taken.get(name, 'no relocation')}"
            yield defined.get(name) == (True, "DEFAULT"), \
                f"{tells}: libc10.so {'defines' if defined.get(name, (False,))[0] else 'lacks'} it"
    for name in sorted(set(used) - set(words)):
        yield True, f"not known here: {name}"


def libraries_of(path, scratch):
    """The folder that holds both libraries, or None."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if pathlib.PurePath(name).name in LIBRARIES:
                    wheel.extract(name, scratch)
        path = pathlib.Path(scratch)
    for folder in (path, path / "lib", path / "torch" / "lib"):
        if all((folder / library).exists() for library in LIBRARIES):
            return folder
    return None


def torch_of_this_python():
    found = importlib.util.find_spec("torch")
    return pathlib.Path(found.origin).parent if found and found.origin else None


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else torch_of_this_python()
    with tempfile.TemporaryDirectory() as scratch:
        folder = libraries_of(path, scratch) if path else None
        if folder is None:
            print(f"check-torch: skipped: no CUDA build of torch in {path or 'this python'}")
            return 77
        print(f"check-torch: {path}")
        wrong = 0
        for well, line in findings(folder):
            wrong += not well
            print(f"  {'ok' if well else 'NO'}  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""The CPythons that are here: the system's, pyenv's, and those of scripts/fetch-pythons.sh."""
import functools
import glob
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FETCHED = (ROOT / os.environ.get("BUILD", "build")).resolve() / "pythons"
PYENV = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
KNOWN = ["3.%d" % minor for minor in range(8, 15)]  # versions whose frames are read


def candidates(version):
    found = sorted(glob.glob("%s/versions/%s.*/bin/python3" % (PYENV, version)))
    found += [shutil.which("python" + version), str(FETCHED / version / "bin" / "python3")]
    return [path for path in found if path and is_version(path, version)]


def is_version(python, version):
    if not os.path.exists(python):
        return False
    said = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
    )
    return said.stdout.decode().strip() == version


@functools.lru_cache(maxsize=None)
def of_version(version):
    """The path of one, the newest of its line; None without any."""
    return (candidates(version) or [None])[-1]


def of_versions(versions):
    """One of each version that is here; the one that runs the tests goes first."""
    return [sys.executable, *filter(None, map(of_version, versions))]


def shared():
    """Each libpython of a version that is read."""
    places = ["%s/versions/*/lib" % PYENV, "/usr/lib/*-linux-gnu", "/usr/lib64"]
    places += [str(FETCHED / version / "lib") for version in KNOWN]
    return sorted(path for place in places
                  for path in glob.glob(place + "/libpython3.[0-9]*.so.1.0"))


def starter(library):
    """The words before a program that is to load that libpython."""
    start = pathlib.Path(library).parents[1] / "bin" / "python3"
    return [str(start), "--run"] if FETCHED in start.parents else []

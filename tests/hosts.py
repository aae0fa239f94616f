"""Running a host with or without the preloaded library, and reading what it left.

Every report that any test produces is checked on the way: valid by the schema
(where python has jsonschema), ledger lines that sum to the total, private to
its owner.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import stat
import subprocess

try:
    import jsonschema
except ImportError:  # a GPU machine may not have it
    jsonschema = None

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
SHIM = BUILD / "libgpuoomshim.so"
SIM = BUILD / "sim"
PROGRAMS = BUILD / "tests" / "programs"
LOAD_PATHS = tuple(os.environ.get("GOS_LOAD_PATHS", "linked dlsym resolver").split())
# Programs of another machine: a command line of qemu-user, which gives what
# follows -E to the program alone.
EMULATOR = os.environ.get("GOS_EMULATOR", "").split()
MIB = 1 << 20


def load_schema():
    path = ROOT / "src" / "report" / "report.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    schema.pop("$id", None)  # a name, not a place to fetch from, as older jsonschema would
    return schema


class Report:
    """One report: its JSON as a dictionary, and its text."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.json = json.loads(self.path.read_text(encoding="utf-8"))
        text_path = self.path.with_suffix(".txt")
        self.text = text_path.read_text(encoding="utf-8") if text_path.exists() else None

    @property
    def code(self):
        return self.json["verdict"]["code"]

    @property
    def outcome(self):
        return self.json["outcome"]

    def device(self, ordinal=0):
        (device,) = [d for d in self.json["devices"] if d["ordinal"] == ordinal]
        return device

    def ledger(self, ordinal=0):
        return {line["item"]: line["bytes"] for line in self.device(ordinal)["ledger"]}

    def steps(self, name):
        return [step for step in self.json["recovery"] if step["step"] == name]

    def series(self, site, device=0):
        """What the site (0: all) held over the run."""
        (series,) = [s for s in self.json["growth"]["series"]
                     if (s["site"], s["device"]) == (site, device)]
        return series

    def live_bytes_by_kind(self):
        live = {}
        for site in self.json["sites"]:
            live[site["kind"]] = live.get(site["kind"], 0) + site["live_bytes"]
        return live

    def check(self):
        if jsonschema is not None:
            jsonschema.validate(self.json, load_schema())
        for device in self.json["devices"]:
            if device["ledger"]:
                total = sum(line["bytes"] for line in device["ledger"])
                assert total == device["total_bytes"], device["ledger"]
        self.check_remedy()
        mode = stat.S_IMODE(self.path.stat().st_mode)
        assert mode == 0o600, oct(mode)

    def check_remedy(self):
        """The verdict is what is left after the steps; what helped gave something back."""
        steps = self.json.get("recovery", [])
        for step in steps:
            if step["result"] == "helped" and step["step"] != "fallback":
                assert step["freed_bytes"] > 0, step
        synced = [step for step in steps if step["step"] == "sync"][-1:]
        if synced and (synced[0]["result"], synced[0]["reason"]) == ("no help", ""):
            assert self.code != "pending-free", steps


def show(path, *words):
    command = emulated([str(BUILD / "gpuoomshim"), "show", str(path), *words], {})
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def shown(path, *words):
    """What the command says of a report or a draft."""
    done = show(path, *words)
    assert done.returncode == 0, (path, done.stderr)
    return done.stdout


class Draft(Report):
    """A failure that no report says yet, as the command reads it."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.json = json.loads(shown(path, "--json", ""))
        self.text = shown(path)


def says_something(draft):
    """After a hard end one may lie there whose failure was told or survived."""
    done = show(draft)
    return done.returncode == 0 or "says nothing any more" not in done.stderr


REPORT_NAME = re.compile(r"gpuoomshim\..+\.(?P<pid>\d+)\.(?P<number>\d+)\.json")


def left_in(folder):
    """Reports and drafts of failures, in the order in which these happened.

    Of the reports of one process that is the order of their numbers.
    """
    paths = [path for path in pathlib.Path(folder).iterdir() if not path.is_symlink()]
    reports = [Report(path) for path in paths if REPORT_NAME.fullmatch(path.name)]
    drafts = [Draft(path) for path in paths if path.suffix == ".draft" and says_something(path)]
    left = [one for one in (*reports, *drafts) if one.json["kind"] == "failure"]
    left.sort(key=lambda one: one.json["request"]["wall_ns"])
    numbers = {}
    for one in left:
        one.check()
        name = REPORT_NAME.fullmatch(one.path.name)
        if name:
            numbers.setdefault(name["pid"], []).append(int(name["number"]))
    assert all(found == sorted(found) for found in numbers.values()), numbers
    return left


class Run:
    """What a host said and left."""

    def __init__(self, process, folder):
        self.folder = folder
        self.code = process.returncode
        self.stdout = process.stdout
        self.stderr = process.stderr
        self.files = sorted(p.name for p in folder.iterdir())
        self.reports = [Report(folder / name) for name in self.files
                        if name.endswith(".json") and not (folder / name).is_symlink()]
        for report in self.reports:
            report.check()

    @property
    def report(self):
        assert len(self.reports) == 1, (self.files, self.stderr)
        return self.reports[0]

    @property
    def left(self):
        return left_in(self.folder)

    @property
    def last(self):
        """The last failure, whether it is in a report or in a draft."""
        left = self.left
        assert left, (self.files, self.stderr)
        return left[-1]

    @property
    def drafts(self):
        return [name for name in self.files if name.endswith(".draft")]

    @property
    def lines_of_shim(self):
        return [line for line in self.stderr.splitlines() if line.startswith("gpuoomshim: ")]

    def told(self, name):
        """Values that a host printed as "shim: name=value"."""
        prefix = f"shim: {name}="
        return [int(line[len(prefix):]) for line in self.stderr.splitlines()
                if line.startswith(prefix)]


def library_variables(command, preload, sim):
    """What makes this command use the library and the simulated GPU, or not."""
    variables = {"LD_LIBRARY_PATH": str(SIM)} if sim else {}
    if str(command[0]).endswith(".inside"):  # nothing to preload, only to switch off
        return variables if preload else dict(variables, GPUOOMSHIM_DISABLE="1")
    return dict(variables, LD_PRELOAD=str(SHIM)) if preload else variables


def emulated(command, variables):
    """The command in the emulator; the loader's variables are for the program, not for it."""
    words = [word for name, value in variables.items() if name.startswith("LD_")
             for word in ("-E", f"{name}={value}")]
    return [*EMULATOR, *words, *command]


def run_host(folder, command, preload=True, sim=True, env=None, timeout=60, **popen):
    """Run one program; its reports go to the new folder."""
    folder.mkdir()
    full = {name: value for name, value in os.environ.items()
            if not name.startswith(("GPUOOMSHIM_", "GPUSIM_", "LD_PRELOAD"))}
    full["GPUOOMSHIM_REPORT_DIR"] = str(folder)
    variables = {**library_variables(command, preload, sim), **(env or {})}
    if EMULATOR:
        command = emulated(command, variables)
        variables = {name: value for name, value in variables.items()
                     if not name.startswith("LD_")}
    full.update(variables)
    return Run(run_session([str(word) for word in command], timeout, env=full, **popen), folder)


def end_session(process):
    """All of it; asked first, so that a launcher can end those that it put elsewhere."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)


def run_session(command, timeout, **popen):
    """As subprocess.run, but no child of it is left behind, nor waited for, when time is over."""
    with subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True, **popen) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except BaseException:
            end_session(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def same_answers(host, *command, **options):
    """Run without and with the library: the driver's answers must be the same.

    Returns the run with it.
    """
    bare = host(*command, preload=False, **options)
    assert bare.code == 0, bare.stdout + bare.stderr
    assert bare.files == []
    shimmed = host(*command, **options)
    assert shimmed.code == 0, shimmed.stdout + shimmed.stderr
    assert shimmed.stdout == bare.stdout
    return shimmed

"""The command: what it prints, what it refuses, and that its reports follow the schema."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from hosts import BUILD, ROOT, load_schema  # noqa: E402

jsonschema = pytest.importorskip("jsonschema")

COMMAND = BUILD / "gpuoomshim"
SAMPLER = BUILD / "tests" / "unit" / "test_report_document"
SCHEMA = ROOT / "src" / "report" / "report.schema.json"


def command(*arguments, env=None, stdin=None, binary=COMMAND):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GPUOOMSHIM_")}
    environment.update(env or {})
    return subprocess.run(
        [str(binary), *map(str, arguments)],
        env=environment, input=stdin, capture_output=True, text=True, timeout=60,
    )


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    """Reports of many shapes, as JSON and text, by the unit test that makes them up."""
    folder = tmp_path_factory.mktemp("samples")
    subprocess.run([SAMPLER], env={**os.environ, "GOS_REPORT_SAMPLES": str(folder)},
                   check=True, capture_output=True, timeout=60)
    assert len(list(folder.glob("*.json"))) >= 10
    return folder


# --- schema


def test_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA.read_text()))


def test_every_shape_of_report_is_valid(samples):
    validator = jsonschema.Draft202012Validator(load_schema())
    for path in sorted(samples.glob("*.json")):
        errors = [f"{list(e.absolute_path)}: {e.message}" for e in
                  validator.iter_errors(json.loads(path.read_text(encoding="utf-8")))]
        assert errors == [], path.name


@pytest.mark.parametrize("damage", [
    lambda r: r.update(schema="gpuoomshim.report/2"),
    lambda r: r.update(surprise=1),
    lambda r: r["verdict"].update(code="bad-luck"),
    lambda r: r["verdict"].pop("confidence"),
    lambda r: r["request"].update(bytes="4 GiB"),
    lambda r: r["devices"][0]["ledger"][0].update(source="guessed"),
    lambda r: r.update(verdict=None),
    lambda r: r["sites"][0].update(live_bytes=-1),
])
def test_schema_refuses_what_is_no_report(samples, damage):
    report = json.loads((samples / "plain.json").read_text(encoding="utf-8"))
    damage(report)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(load_schema()).validate(report)


def codes(header, macro):
    """Second argument of each row of an X-macro list."""
    text = (ROOT / "src" / header).read_text()
    body = re.search(rf"#define {macro}\((\w+)\)(.*?)\n\n", text, re.S)
    return re.findall(rf"{body[1]}\(\w+,\s*(?:\\\n\s*)?\"([^\"]+)\"", body[2])


def test_schema_lists_the_codes_of_the_product():
    schema = load_schema()
    definitions = schema["$defs"]
    assert definitions["verdict_code"]["enum"] == codes("diagnose/diagnosis.h", "GOS_VERDICTS")
    assert definitions["kind"]["enum"] == codes("track/kind.h", "GOS_KINDS")
    ledger = definitions["device"]["properties"]["ledger"]["items"]["properties"]
    assert ledger["item"]["enum"] == codes("diagnose/diagnosis.h", "GOS_LEDGER_LINES")


def test_integers_that_are_bytes_are_called_bytes():
    """The promise of the format: a *_bytes is an integer, or a series of them, and so is bytes."""
    def walk(node, path=()):
        if isinstance(node, dict):
            for name, value in node.get("properties", {}).items():
                if name == "bytes" or name.endswith("_bytes"):
                    kind = value.get("items", value).get("type")
                    assert kind in ("integer", ["integer", "null"]), path + (name,)
            for key, value in node.items():
                walk(value, path + (key,))
        elif isinstance(node, list):
            for value in node:
                walk(value, path)
    walk(load_schema())


# --- show


def test_show_prints_the_text_that_was_written_beside_the_json(samples):
    for path in sorted(samples.glob("*.json")):
        shown = command("show", path)
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout == path.with_suffix(".txt").read_text(encoding="utf-8"), path.name
        assert shown.stderr == ""


def test_show_all_has_the_frames_that_the_text_hides(samples):
    assert "_PyEval_EvalFrameDefault" not in command("show", samples / "plain.json").stdout
    assert "_PyEval_EvalFrameDefault" in command("show", "--all", samples / "plain.json").stdout


def test_show_json_prints_a_part(samples):
    part = command("show", samples / "plain.json", "--json", "verdict.code")
    assert json.loads(part.stdout) == "exhausted-by-process"
    part = command("show", samples / "plain.json", "--json=devices.0.ledger")
    assert json.loads(part.stdout)[0]["item"] == "free"
    part = command("show", samples / "plain.json", "--json", "")
    assert json.loads(part.stdout) == json.loads((samples / "plain.json").read_text())


def test_show_json_keeps_integers_beyond_two_to_the_63(samples):
    part = command("show", samples / "too-large.json", "--json", "request.bytes")
    assert part.stdout == "18446744073709547520\n"


DRAFTER = BUILD / "tests" / "unit" / "test_report_draft"
STEM = "gpuoomshim.node-17.r3.4711"


def leave_draft(folder, way):
    """A process that puts a draft down and ends in that way, or, by "wait", goes on."""
    process = subprocess.Popen([DRAFTER], stdout=subprocess.PIPE, text=True, start_new_session=True,
                               env={**os.environ, "GOS_DRAFT_END": way,
                                    "GOS_DRAFT_FOLDER": str(folder)})
    assert process.stdout.readline() == "ready\n"
    if way not in ("wait", "exec"):
        process.wait(timeout=60)
    return process


def end(process):
    process.kill()
    process.wait(timeout=60)
    process.stdout.close()


@pytest.mark.parametrize("way", ["_exit", "exit", "quick_exit", "abort", "kill", "fork"])
def test_show_reads_what_an_ended_process_left(tmp_path, way):
    end(leave_draft(tmp_path, way))
    (draft,) = tmp_path.iterdir()
    assert draft.name == f"{STEM}.1.draft"
    shown = command("show", draft)
    assert shown.returncode == 0 and shown.stderr == ""
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("gpuoomshim ")
    assert lines[1] == "draft      its process ended before it could tell this"
    part = command("show", draft, "--json", "request.bytes")
    assert json.loads(part.stdout) == (5001 if way == "fork" else 123456789)


def test_show_says_that_the_process_of_a_draft_still_runs(tmp_path):
    process = leave_draft(tmp_path, "wait")
    draft = tmp_path / f"{STEM}.1.draft"
    assert ("draft      its process still runs, and may survive this yet"
            in command("show", draft).stdout.splitlines())
    end(process)
    assert "its process ended" in command("show", draft).stdout


def test_show_knows_that_a_program_gave_way_to_another_in_its_process(tmp_path):
    process = leave_draft(tmp_path, "exec")
    while "sleep" not in pathlib.Path(f"/proc/{process.pid}/cmdline").read_text():
        pass
    assert "its process ended" in command("show", tmp_path / f"{STEM}.1.draft").stdout
    end(process)


def test_show_says_in_a_line_that_a_draft_is_void_or_damaged(tmp_path):
    end(leave_draft(tmp_path, "void"))
    draft = tmp_path / f"{STEM}.1.draft"
    shown = command("show", draft)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.count("\n") == 1 and "says nothing any more" in shown.stderr
    for damage in (draft.read_bytes()[:5000], draft.read_bytes()[:8], b""):
        draft.write_bytes(damage)
        shown = command("show", draft)
        assert shown.returncode == 2 and shown.stderr.count("\n") == 1


def test_report_of_a_draft_is_valid_and_shown_as_it_was_written(tmp_path):
    end(leave_draft(tmp_path, "kill"))
    end(leave_draft(tmp_path, "adopt"))
    text, report = tmp_path / f"{STEM}.1.txt", tmp_path / f"{STEM}.1.json"
    assert sorted(tmp_path.iterdir()) == [report, text]
    shown = command("show", report)
    assert shown.stdout == text.read_text()
    assert shown.stdout.splitlines()[1].startswith("found      20")
    jsonschema.Draft202012Validator(load_schema()).validate(json.loads(report.read_text()))


def test_show_json_names_the_nearest_part_when_there_is_none(samples):
    part = command("show", samples / "plain.json", "--json", "verdict.cod")
    assert part.returncode == 2
    assert "did you mean 'code'" in part.stderr
    assert command("show", samples / "plain.json", "--json", "devices.9").returncode == 2
    assert command("show", samples / "plain.json", "--json", "kind.x").returncode == 2


def test_show_reads_standard_input(samples):
    text = (samples / "plain.json").read_text()
    assert command("show", "-", stdin=text).stdout.startswith("gpuoomshim ")


def test_show_refuses_every_cut_of_a_report_without_dying(samples, tmp_path):
    whole = (samples / "plain.json").read_bytes()
    damaged = tmp_path / "damaged.json"
    for length in range(0, len(whole) - 2, max(1, len(whole) // 40)):
        damaged.write_bytes(whole[:length])
        shown = command("show", damaged)
        assert shown.returncode == 2, length
        assert "damaged" in shown.stderr or "empty" in shown.stderr
        assert shown.stdout == ""


@pytest.mark.parametrize("content", ["[]", "3", "{}", '{"schema": 4}',
                                     '{"schema": "gpuoomshim.report/2"}', "null"])
def test_show_refuses_json_that_is_no_report(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    shown = command("show", path)
    assert shown.returncode == 2
    assert "no report" in shown.stderr or "damaged" in shown.stderr


def test_show_refuses_a_report_of_which_nothing_is_left(tmp_path):
    path = tmp_path / "hollow.json"
    path.write_text('{"schema": "gpuoomshim.report/1", "kind": "failure"}')
    shown = command("show", path)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "not whole: it has no 'outcome'" in shown.stderr


def replace_values(node, value):
    if isinstance(node, dict):
        for key in node:
            if key == "schema":
                continue
            yield node, key
            yield from replace_values(node[key], value)
    elif isinstance(node, list):
        for i in range(min(len(node), 2)):
            yield node, i
            yield from replace_values(node[i], value)


@pytest.mark.parametrize("value", [None, [], {}, "x", -7, 2**63, 1.5, True])
def test_show_survives_any_value_of_a_wrong_type(samples, tmp_path, value):
    report = json.loads((samples / "fragmented.json").read_text())
    path = tmp_path / "odd.json"
    for owner, key in list(replace_values(report, value))[::5]:
        kept = owner[key]
        owner[key] = value
        path.write_text(json.dumps(report))
        owner[key] = kept
        shown = command("show", path)
        assert shown.returncode in (0, 2), (key, shown.returncode, shown.stderr)


def test_show_says_what_is_wrong_with_the_call(samples):
    assert command("show").returncode == 2
    assert command("show", "/nonexistent.json").returncode == 2
    two = command("show", samples / "plain.json", samples / "fragmented.json")
    assert two.returncode == 2 and "one file" in two.stderr and two.stdout == ""
    text = command("show", samples / "plain.txt")
    assert text.returncode == 2 and "the .json beside it" in text.stderr
    wrong = command("show", "--al", samples / "plain.json")
    assert wrong.returncode == 2
    assert "did you mean '--all'" in wrong.stderr


def test_show_demangles_names_of_cxx(samples, tmp_path):
    text = (samples / "native-only.json").read_text()
    path = tmp_path / "mangled.json"
    path.write_text(text.replace('"allocate_block"', '"_ZN3c104cuda6mallocEm"'))
    assert "c10::cuda::malloc(unsigned long)" in command("show", path).stdout


ODD = """static int quiet_helper(int x)
{
    return x * 3 + 1;
}
static inline __attribute__((always_inline)) int inner(int x)
{
    __asm__ volatile("inlined_here: nop");
    return x;
}
int outer(int x)
{
    return quiet_helper(inner(x));
}
"""


def library_of(folder, *flags, source=ODD, name="odd.c", compilers=("cc", "gcc")):
    compiler = next(filter(None, map(shutil.which, compilers)), None)
    if not compiler or not shutil.which("nm"):
        pytest.skip("no compiler or no nm")
    try:
        ctypes.CDLL("libdw.so.1")
    except OSError:
        pytest.skip("no libdw")
    (folder / name).write_text(source)
    library = folder / "libodd.so"
    subprocess.run([compiler, "-g", "-O0", "-shared", "-fPIC", "-Wl,--build-id", *flags,
                    "-o", library, folder / name], check=True)
    return library


def build_id_of(library):
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


@pytest.fixture
def built(tmp_path):
    """A library with a function inside, and a report with a frame in it that has no symbol."""
    library = library_of(tmp_path)
    return library, address_of(library, "quiet_helper"), build_id_of(library)


def address_of(library, symbol):
    symbols = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    return int(re.search(rf"^(\w+) \w {symbol}$", symbols, re.M)[1], 16)


def report_with_frame(samples, tmp_path, library, address, build_id, **more):
    report = json.loads((samples / "native-only.json").read_text())
    report["modules"].append({"module": 99, "name": library.name, "path": str(library),
                              "build_id": build_id})
    frame = {"library": library.name, "module": 99, "offset": address + 5, **more}
    report["sites"][0]["stack"]["native"].insert(2, frame)
    report["request"]["stack"]["native"].insert(2, frame)
    path = tmp_path / "frame.json"
    path.write_text(json.dumps(report))
    return path


def test_show_symbolize_names_functions_from_the_files(samples, tmp_path, built):
    path = report_with_frame(samples, tmp_path, *built)
    assert "quiet_helper" not in command("show", path).stdout
    shown = command("show", "--symbolize", path)
    assert "quiet_helper at " in shown.stdout, shown.stderr
    assert "odd.c:" in shown.stdout


def test_show_symbolize_gives_exported_functions_their_lines(samples, tmp_path, built):
    library, _, build_id = built
    path = report_with_frame(samples, tmp_path, library, address_of(library, "outer"), build_id,
                             symbol="outer", symbol_offset=5)
    assert "outer+0x5" in command("show", path).stdout
    shown = command("show", "--symbolize", path)
    assert re.search(r"outer at \S+/odd.c:11", shown.stdout), shown.stderr


def inlined_frame(samples, tmp_path, library):
    return report_with_frame(samples, tmp_path, library, address_of(library, "inlined_here") - 4,
                             build_id_of(library))


def assert_inlined_in_place(shown):
    places = re.findall(r"libodd.so +(\w+) at \S+/odd.c:(\d+)$", shown.stdout, re.M)
    assert places[:2] == [("inner", "7"), ("outer", "12")], (shown.stdout, shown.stderr)


@pytest.mark.parametrize("flags", ["", "-gdwarf-4", "-gdwarf-5", "-gz", "-gdwarf-4 -gz"])
def test_show_symbolize_shows_inlined_functions_in_their_place(samples, tmp_path, flags):
    library = library_of(tmp_path, *flags.split())
    assert_inlined_in_place(command("show", "--symbolize",
                                    inlined_frame(samples, tmp_path, library)))


def test_show_symbolize_needs_no_table_of_addresses(samples, tmp_path, built):
    if not shutil.which("objcopy"):
        pytest.skip("no objcopy")
    subprocess.run(["objcopy", "--remove-section=.debug_aranges", built[0]], check=True)
    assert_inlined_in_place(command("show", "--symbolize",
                                    inlined_frame(samples, tmp_path, built[0])))


@pytest.mark.parametrize("compiler", ["c++", "clang++"])
def test_show_symbolize_names_functions_of_namespaces_in_full(samples, tmp_path, compiler):
    source = ("namespace place { namespace {\n"
              "inline __attribute__((always_inline)) int inner(int x)\n"
              "{ __asm__ volatile(\"inlined_here: nop\"); return x; }\n"
              "__attribute__((noinline)) int local(int x, char)\n{ return inner(x) + 1; }\n"
              "} }\nint outer(int x) { return place::local(x, 'a'); }\n")
    library = library_of(tmp_path, source=source, name="odd.cc", compilers=(compiler,))
    shown = command("show", "--symbolize", inlined_frame(samples, tmp_path, library))
    places = re.findall(r"libodd.so +(\S.*) at \S+/odd.cc:(\d+)$", shown.stdout, re.M)[:2]
    assert "inner" in places[0][0] and places[0][1] == "3", shown.stdout
    assert places[1] == ("place::(anonymous namespace)::local(int, char)", "5")


def test_show_symbolize_takes_names_of_any_length(samples, tmp_path):
    name = "very_" * 2000 + "long"
    library = library_of(tmp_path, source=ODD.replace("quiet_helper", name))
    shown = command("show", "--all", "--symbolize",
                    report_with_frame(samples, tmp_path, library, address_of(library, name),
                                      build_id_of(library)))
    assert re.search(r"libodd.so +(very_){80}", shown.stdout), shown.stderr


def test_show_symbolize_follows_the_link_to_debug_information(samples, tmp_path, built):
    library, address, build_id = built
    if not shutil.which("objcopy"):
        pytest.skip("no objcopy")
    debug = library.with_suffix(".debug")
    for words in (["--only-keep-debug", library, debug], ["--strip-all", library],
                  [f"--add-gnu-debuglink={debug}", library]):
        subprocess.run(["objcopy", *words], check=True)
    shown = command("show", "--symbolize",
                    report_with_frame(samples, tmp_path, library, address, build_id))
    assert re.search(r"quiet_helper at \S+/odd.c:\d", shown.stdout), shown.stderr


def test_show_symbolize_tells_a_missing_file_from_a_changed_one(samples, tmp_path, built):
    library, address, build_id = built
    path = report_with_frame(samples, tmp_path, library, address, build_id)
    library.unlink()
    shown = command("show", "--symbolize", path)
    assert f"{library} cannot be opened (No such file or directory)" in shown.stderr


def test_show_symbolize_takes_no_neighbours_name_from_a_stripped_file(samples, tmp_path, built):
    library, address, build_id = built
    if not shutil.which("strip"):
        pytest.skip("no strip")
    subprocess.run(["strip", library], check=True)
    path = report_with_frame(samples, tmp_path, library, address, build_id)
    shown = command("show", "--symbolize", path)
    assert shown.returncode == 0
    assert "outer" not in shown.stdout
    assert f"+{address + 5:#x}" in shown.stdout


def test_show_symbolize_leaves_a_changed_file_alone(samples, tmp_path, built):
    library, address, _ = built
    path = report_with_frame(samples, tmp_path, library, address, "00" * 20)
    shown = command("show", "--symbolize", path)
    assert "quiet_helper" not in shown.stdout
    assert "not the file that was loaded (another build id)" in shown.stderr


def test_show_symbolize_takes_no_debug_information_of_another_build(samples, tmp_path, built):
    library, address, build_id = built
    if not shutil.which("objcopy"):
        pytest.skip("no objcopy")
    (tmp_path / "other").mkdir()
    other = library_of(tmp_path / "other", "-DOTHER", source="int before;\n" + ODD)
    other.rename(tmp_path / "libodd.debug")
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={tmp_path}/libodd.debug",
                    library], check=True)
    shown = command("show", "--symbolize",
                    report_with_frame(samples, tmp_path, library, address, build_id))
    assert shown.returncode == 0
    assert f"+{address + 5:#x}" in shown.stdout and "odd.c" not in shown.stdout


@pytest.mark.parametrize("share", [0, 0.01, 0.3, 0.6, 0.9, 0.999])
def test_show_symbolize_leaves_frames_of_a_truncated_file_as_they_are(samples, tmp_path, built,
                                                                       share):
    path = report_with_frame(samples, tmp_path, *built)
    os.truncate(built[0], int(built[0].stat().st_size * share))
    shown = command("show", "--symbolize", path)
    assert shown.returncode == 0
    assert f"+{built[1] + 5:#x}" in shown.stdout, shown.stdout


@pytest.mark.parametrize("section", [".debug_info", ".debug_abbrev", ".debug_line", ".debug_str"])
def test_show_symbolize_survives_damaged_debug_information(samples, tmp_path, built, section):
    library = built[0]
    sections = subprocess.run(["readelf", "-SW", library], capture_output=True, text=True).stdout
    found = re.search(rf" \{section} +PROGBITS +\w+ (\w+) (\w+)", sections)
    path = report_with_frame(samples, tmp_path, *built)
    with library.open("r+b") as file:
        file.seek(int(found[1], 16))
        file.write(b"\xa5" * int(found[2], 16))
    shown = command("show", "--symbolize", path)
    assert shown.returncode == 0
    assert re.search(r"^ +libodd.so +\S", shown.stdout, re.M), shown.stdout


DEEP = """
    .globl deep
    .type deep, %function
deep: .skip 16
    .size deep, . - deep
    .section .debug_abbrev, "", %progbits
    .byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0
    .byte 2, 0x0b, 1, 0x11, 1, 0x12, 0x0b, 0, 0, 0
    .section .debug_info, "", %progbits
    .long 2f - 1f
1:  .short 4
    .long 0
    .byte 8, 1
    .quad deep, 16
    .rept 200000
    .byte 2
    .quad deep
    .byte 16
    .endr
    .skip 200001
2:  .section .note.GNU-stack, "", %progbits
"""


def test_show_symbolize_survives_blocks_without_end(samples, tmp_path):
    library = library_of(tmp_path, source=DEEP, name="odd.s")
    shown = command("show", "--symbolize",
                    report_with_frame(samples, tmp_path, library, address_of(library, "deep"),
                                      build_id_of(library)))
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"libodd.so +deep\b", shown.stdout), shown.stdout


def test_show_needs_libdw_for_symbolize_alone(samples, tmp_path, built):
    path = report_with_frame(samples, tmp_path, *built)
    (tmp_path / "libdw.so.1").write_text("no library")
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    assert command("show", path, env=env).returncode == 0
    shown = command("show", "--symbolize", path, env=env)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert "--symbolize needs libdw (Debian: libdw1): " in shown.stderr
    assert shown.stderr.count("\n") == 1


# --- options, version, help


def test_options_lists_every_row_of_the_one_list():
    rows = re.findall(r"^OPTION\(\w+, (\w+),", (ROOT / "src/base/options.def").read_text(), re.M)
    shown = command("options")
    assert shown.returncode == 0
    assert re.findall(r"^GPUOOMSHIM_(\w+)$", shown.stdout, re.M) == rows


def test_options_shows_current_values_and_whether_they_can_be_read():
    shown = command("options", env={"GPUOOMSHIM_REPORT_MAX": "7", "GPUOOMSHIM_RETRY": "pray"})
    assert "now      7" in shown.stdout
    assert "now      cannot be read" in shown.stdout
    assert "GPUOOMSHIM_RETRY=pray" in shown.stderr
    assert shown.returncode == 1


def test_version_and_help():
    assert re.fullmatch(r"gpuoomshim \d+\.\d+(\.\d+)?\n", command("version").stdout)
    assert command("--version").stdout == command("version").stdout
    for name in ("help", "--help", "-h"):
        assert "gpuoomshim run" in command(name).stdout
    assert command().returncode == 2


@pytest.mark.parametrize("name", ["run", "show", "options", "version"])
@pytest.mark.parametrize("word", ["--help", "-h"])
def test_each_command_says_how_it_is_called(name, word):
    shown = command(name, word)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"  gpuoomshim {name}")
    assert shown.stdout in command("help").stdout


def test_unknown_command_gets_the_nearest_one():
    wrong = command("optoins")
    assert wrong.returncode == 2
    assert "did you mean 'options'" in wrong.stderr
    assert command("xyzzyxyzzy").returncode == 2


# --- run


@pytest.fixture
def installed(tmp_path):
    """The command in bin and an empty library in lib, as after an installation."""
    for name in ("bin", "lib"):
        (tmp_path / name).mkdir()
    shutil.copy(COMMAND, tmp_path / "bin")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "/dev/null", "-o",
                    tmp_path / "lib" / "libgpuoomshim.so"], check=True)
    return tmp_path


def environment_of(process):
    return dict(line.split("=", 1) for line in process.stdout.splitlines() if "=" in line)


def test_run_preloads_the_library_of_its_own_installation(installed):
    ran = command("run", "--", "env", binary=installed / "bin" / "gpuoomshim")
    assert ran.returncode == 0, ran.stderr
    preload = environment_of(ran)["LD_PRELOAD"]
    assert pathlib.Path(preload).resolve() == installed / "lib" / "libgpuoomshim.so"


def test_run_puts_the_library_before_what_is_preloaded(installed):
    library = installed / "lib" / "libgpuoomshim.so"
    other = installed / "other.so"
    shutil.copy(library, other)
    ran = command("run", "env", binary=installed / "bin" / "gpuoomshim",
                  env={"LD_PRELOAD": str(other), "GPUOOMSHIM_LIB": str(library)})
    variables = environment_of(ran)
    assert variables["LD_PRELOAD"] == f"{library}:{other}"
    assert "GPUOOMSHIM_LIB" not in variables


def test_run_turns_options_into_settings(installed):
    ran = command("run", "--report-dir=/tmp/x y", "--exit-report", "--retry=off", "--", "env",
                  binary=installed / "bin" / "gpuoomshim")
    variables = environment_of(ran)
    assert variables["GPUOOMSHIM_REPORT_DIR"] == "/tmp/x y"
    assert variables["GPUOOMSHIM_EXIT_REPORT"] == "1"
    assert variables["GPUOOMSHIM_RETRY"] == "off"


def test_run_passes_arguments_and_exit_status_on(installed):
    ran = command("run", "--", "sh", "-c", 'echo "$@"; exit 42', "sh", "--report=x", "a b",
                  binary=installed / "bin" / "gpuoomshim")
    assert (ran.returncode, ran.stdout) == (42, "--report=x a b\n")


def test_run_refuses_what_it_does_not_know(installed):
    binary = installed / "bin" / "gpuoomshim"
    wrong = command("run", "--report-dri=/tmp", "--", "true", binary=binary)
    assert wrong.returncode == 2
    assert "did you mean --report-dir?" in wrong.stderr
    for arguments in (("--retry=pray", "true"), ("--retry", "true"), ("-x", "true"),
                      ("-", "true"), ("-=", "true"), ("--",), ()):
        refused = command("run", *arguments, binary=binary)
        assert refused.returncode == 2, arguments
        assert refused.stderr.startswith("gpuoomshim: ")
    assert "GPUOOMSHIM_LIMIT=zz cannot be used, so nothing was run" in command(
        "run", "--limit=zz", "true", binary=binary).stderr


def test_run_says_when_command_or_library_is_missing(installed, tmp_path):
    binary = installed / "bin" / "gpuoomshim"
    assert command("run", "--", "/nonexistent/program", binary=binary).returncode == 127
    assert command("run", "--", str(tmp_path), binary=binary).returncode == 126
    missing = command("run", "true", binary=binary, env={"GPUOOMSHIM_LIB": "/nonexistent.so"})
    assert missing.returncode == 127
    assert "/nonexistent.so" in missing.stderr
    (installed / "lib" / "libgpuoomshim.so").unlink()
    missing = command("run", "true", binary=binary)
    assert missing.returncode == 127
    assert "GPUOOMSHIM_LIB" in missing.stderr

"""torch's own word: its own functions run as if we were not there."""
import platform
import re
import shutil
import subprocess
import sys

import pytest

from hosts import EMULATOR, PROGRAMS, ROOT, SHIM

TORCHES = ("torch_1", "torch_2")
each_abi = pytest.mark.parametrize("torch", TORCHES)
disabled_or_not = pytest.mark.parametrize("env", [{}, {"GPUOOMSHIM_DISABLE": "1"}],
                                          ids=["enabled", "disabled"])


def words(same, torch, what, **options):
    return same(PROGRAMS / "torch_words", PROGRAMS / torch, what, **options)


def counts(run, when):
    """(blocks, refusals) that torch's own functions were told by then."""
    found = re.search(rf"^outcome: {when}: blocks (\d+) \w+ refusals (\d+)", run.stdout, re.M)
    return int(found[1]), int(found[2])


@each_abi
@disabled_or_not
def test_torchs_functions_are_called_as_often_and_with_the_same(same, torch, env):
    run = words(same, torch, "ways", env=env)
    assert counts(run, "before cuInit") == (2, 0)
    assert counts(run, "before uncached") == (11, 4)
    assert counts(run, "end") == (11, 6)
    for how in ("caching", "capturing", "expandable", "limit"):
        assert f"outcome: {how}: refused\n" in run.stdout
    assert "outcome: uncached: given\n" in run.stdout  # its result is the error


@each_abi
def test_exception_of_the_real_function_passes(same, torch):
    run = words(same, torch, "ways")
    assert "outcome: profiler: the profiler threw 4711\n" in run.stdout
    assert "outcome: profiler again: the profiler threw 4711\n" in run.stdout


@each_abi
def test_threads_tell_while_others_load_and_fork(same, torch):
    run = words(same, torch, "many")
    assert "outcome: blocks 400001 refusals 80 children 0\n" in run.stdout


@each_abi
@disabled_or_not
def test_forked_child_reaches_them_where_its_parent_never_called(same, torch, env):
    run = words(same, torch, "children", env=env)
    assert "outcome: before cuInit 0 0\n" in run.stdout
    assert "outcome: after cuInit 0 0\n" in run.stdout


@each_abi
@disabled_or_not
@pytest.mark.parametrize("when", ["reload", "reload-after-init"])
def test_torch_that_comes_back_elsewhere_is_found_again(same, torch, when, env):
    run = words(same, torch, when, env=env)
    assert 1 in run.told("moved")


def test_two_torches_each_get_their_own(same):
    run = words(same, "torch_2", "two")
    assert counts(run, "one") == (5, 1)
    assert counts(run, "other") == (6, 1)


@disabled_or_not
def test_program_without_torch_is_told_that_there_are_no_such_names(same, env):
    run = words(same, "torch_2", "lookups", env=env)
    assert run.stdout.count("none: default 0 program 0") == 2
    assert run.stdout.count("own 1") == 2
    assert run.stdout.count("global: default 1 program 1") == 2


def test_name_without_a_function_behind_it_is_harmless_and_counted(same):
    run = words(same, "torch_2", "absent")
    assert any("functions of torch not found" in line for line in run.reports[-1].json["incomplete"])


def objdump():
    name = "aarch64-linux-gnu-objdump" if EMULATOR else "objdump"
    return shutil.which(name) or pytest.skip(f"no {name}")


def test_real_function_is_entered_by_a_jump_with_no_frame_of_ours():
    text = (ROOT / "src/shim/torch_word.def").read_text()
    symbols = re.findall(r"^TORCH_WORD\(\w+, (\w+),", text, flags=re.M)
    assert len(symbols) == 4
    code = subprocess.run([objdump(), "-d", "--no-show-raw-insn", SHIM], capture_output=True,
                          text=True, check=True).stdout
    for symbol in symbols:
        body = re.search(rf"<{symbol}>:\n(.*?)\n\n", code, re.S)[1]
        lines = [line.split(":\t")[1].split() for line in body.splitlines()]
        while lines[-1][0].startswith(("nop", "xchg", "data16", "cs")):
            lines.pop()
        mnemonics = [line[0] for line in lines]
        assert lines[-1] in (["jmp", "*%rax"], ["br", "x16"]), lines
        assert "ret" not in mnemonics
        assert mnemonics.count("push") == mnemonics.count("pop")
        assert mnemonics.count("stp") == mnemonics.count("ldp")
        if platform.machine() == "x86_64" and not EMULATOR:
            assert mnemonics.count("push") == 5 and mnemonics.count("call") == 1


def check_torch(folder):
    return subprocess.run([sys.executable, ROOT / "scripts" / "check-torch.py", folder],
                          capture_output=True, text=True, check=False)


@each_abi
def test_torch_whose_word_can_come_is_known_by_its_symbols(torch):
    checked = check_torch(PROGRAMS / torch)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "NO" not in checked.stdout and checked.stdout.count("ok") == 6


def test_torch_whose_word_cannot_come_is_known_by_its_symbols(tmp_path):
    shutil.copy(PROGRAMS / "torch_2" / "libc10.so", tmp_path)
    shutil.copy(PROGRAMS / "libc10_cuda.so", tmp_path)
    checked = check_torch(tmp_path)
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert "NO  out_of_memory: libc10_cuda.so takes no function" in checked.stdout


def test_folder_without_torch_is_skipped(tmp_path):
    assert check_torch(tmp_path).returncode == 77

"""The script that asks frameworks, run by itself against made-up packages."""
import builtins
import gc
import importlib.util
import os
import pickle
import types
import zlib

import pytest

from hosts import MIB, ROOT

SCRIPT = (ROOT / "src" / "observe" / "frameworks_script.py").read_text(encoding="utf-8")
CODE = compile(SCRIPT, "<gpuoomshim>", "exec")
PAGE = 20 * MIB


def block(size, used=False, **more):
    return dict({"size": size, "state": "active_allocated" if used else "inactive"}, **more)


def segment(*blocks, address=1 << 40, device=0, **more):
    total = sum(b["size"] for b in blocks)
    return dict({"address": address, "device": device, "total_size": total,
                 "segment_type": "large", "blocks": list(blocks)}, **more)


def torch_with(segments, history=False, **more):
    def unused(of):
        return sum(b["size"] for s in of for b in s["blocks"] if b["state"] == "inactive")

    def memory_stats(device):
        mine = [s for s in segments if s["device"] == device]
        reserved = sum(s["total_size"] for s in mine)
        split = [s for s in mine if 0 < unused([s]) < s["total_size"]]
        numbers = {"reserved_bytes": reserved, "allocated_bytes": reserved - unused(mine),
                   "active_bytes": reserved - unused(mine), "inactive_split_bytes": unused(split),
                   "active": 1, "inactive_split": 1, "segment": len(mine)}
        numbers.update(more)
        return {key + ".all.current": value for key, value in numbers.items()}

    memory = types.SimpleNamespace(
        _snapshot=lambda: {"segments": segments, "allocator_settings": {}})
    cuda = types.SimpleNamespace(memory_stats=memory_stats, memory=memory,
                                 is_initialized=lambda: True,
                                 get_allocator_backend=lambda: "native")
    return types.SimpleNamespace(
        cuda=cuda, _C=types.SimpleNamespace(_cuda_isHistoryEnabled=lambda: history))


def ask(modules, devices="0", asked=1024 * MIB, snapshot=""):
    space = {"__builtins__": builtins, "modules": modules, "who": "torch cupy jax",
             "devices": devices, "asked": str(asked), "snapshot": snapshot}
    exec(CODE, space)  # as the library does
    return space["answer"].splitlines()


def facts(lines, name="torch", device=0):
    (line,) = [line for line in lines if line.startswith(f"+ {name} {device} ")]
    return dict(word.split("=", 1) for word in line.split()[3:])


def numbers(*segments, **options):
    return {key: int(value) for key, value in facts(ask({"torch": torch_with(list(segments))},
                                                        **options)).items() if value.isdigit()}


def test_nobody_there_is_nobody_asked():
    assert ask({}) == ["."]
    cuda = types.SimpleNamespace(is_initialized=lambda: False)
    assert ask({"torch": types.SimpleNamespace(cuda=cuda)}) == ["."]


def test_whole_segments_can_be_given_back_and_pinned_ones_not():
    found = numbers(segment(block(512 * MIB)),
                    segment(block(2 * MIB, True), block(300 * MIB), block(2 * MIB, True),
                            block(8 * MIB)))
    assert found["releasable"] == 512 * MIB
    assert (found["segments"], found["pinned"], found["pieces"]) == (2, 1, 2)
    assert found["free_blocks"] == 3
    assert found["piece_bytes"] == 308 * MIB and found["largest"] == 512 * MIB
    assert found["fitting"] == 0
    assert numbers(segment(block(512 * MIB)), asked=500 * MIB)["fitting"] == 512 * MIB


def test_expandable_segments_are_given_back_by_whole_pages():
    found = numbers(segment(block(5 * MIB, True), block(60 * MIB), block(15 * MIB, True),
                            is_expandable=True))
    assert found["releasable"] == 2 * PAGE and found["expandable"] == 1
    found = numbers(segment(block(5 * MIB, True), block(10 * MIB), block(5 * MIB, True),
                            is_expandable=True))
    assert found["releasable"] == 0
    found = numbers(segment(block(MIB, True), block(5 * MIB), segment_type="small",
                            is_expandable=True))
    assert found["releasable"] == 4 * MIB


def test_private_pools_neither_serve_others_nor_are_given_back():
    found = numbers(segment(block(2048 * MIB), segment_pool_id=(0, 7)))
    assert (found["releasable"], found["fitting"]) == (0, 0)
    assert found["largest"] == 2048 * MIB


def test_each_device_has_its_own_numbers():
    torch = torch_with([segment(block(512 * MIB)),
                        segment(block(64 * MIB, True), device=1)])
    lines = ask({"torch": torch}, devices="0 1")
    assert int(facts(lines)["reserved"]) == 512 * MIB
    assert int(facts(lines, device=1)["used"]) == 64 * MIB
    assert len([line for line in lines if line.startswith("+")]) == 2


def test_segments_of_another_moment_are_not_believed():
    torch = torch_with([segment(block(512 * MIB))], reserved_bytes=600 * MIB)
    assert "map" not in facts(ask({"torch": torch}))


@pytest.mark.parametrize("torch", [torch_with([], active=30000), torch_with([], history=True)],
                         ids=["many-blocks", "history"])
def test_what_would_take_long_is_not_walked(torch):
    torch.cuda.memory._snapshot = lambda: pytest.fail("walked")
    torch.cuda.memory_snapshot = lambda: pytest.fail("walked")
    lines = ask({"torch": torch})
    assert "map" not in facts(lines)
    assert [line for line in lines if line.startswith("- torch ")]


def test_memory_of_the_drivers_pool_is_marked():
    torch = torch_with([segment(block(512 * MIB))])
    torch.cuda.get_allocator_backend = lambda: "cudaMallocAsync"
    found = facts(ask({"torch": torch}))
    assert (found["pools"], found["backend"]) == ("1", "cudaMallocAsync")
    assert "map" not in found


@pytest.mark.parametrize("snapshot", [None, [], {}, {"segments": None}, {"segments": [{}]},
                                      {"segments": [segment(block(-1))]}])
def test_a_broken_snapshot_leaves_the_statistics(snapshot):
    torch = torch_with([])
    torch.cuda.memory._snapshot = lambda: snapshot
    lines = ask({"torch": torch})
    assert facts(lines)["reserved"] == "0"


def test_words_cannot_make_lines_of_their_own():
    torch = torch_with([segment(block(MIB))])
    torch.cuda.get_allocator_backend = lambda: "a\n+ torch 0 reserved=1 \x1b[m"
    lines = ask({"torch": torch})
    assert len([line for line in lines if line.startswith("+")]) == 1

    class Evil(Exception):
        def __str__(self):
            raise KeyboardInterrupt
    torch.cuda.memory_stats = lambda device: (_ for _ in ()).throw(Evil())
    assert ask({"torch": torch})[0] == "- torch an exception without words"


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_not_collected_meanwhile(enabled):
    torch, seen = torch_with([]), []

    def memory_stats(device):
        seen.append(gc.isenabled())
        raise KeyError("x")
    torch.cuda.memory_stats = memory_stats
    try:
        gc.enable() if enabled else gc.disable()
        ask({"torch": torch, "gc": gc})
        assert seen == [False] and gc.isenabled() == enabled
    finally:
        gc.enable()


def test_cupy_is_asked_on_each_device():
    current = []

    class Device:
        def __init__(self, number):
            self.number = number

        def __enter__(self):
            current.append(self.number)

        def __exit__(self, *problem):
            current.pop()
    pool = types.SimpleNamespace(total_bytes=lambda: (current[0] + 1) * MIB,
                                 used_bytes=lambda: current[0] * MIB, n_free_blocks=lambda: 4)
    cupy = types.SimpleNamespace(get_default_memory_pool=lambda: pool,
                                 get_default_pinned_memory_pool=lambda: pool,
                                 cuda=types.SimpleNamespace(Device=Device))
    lines = ask({"cupy": cupy}, devices="0 1")
    empty, used = facts(lines, "cupy"), facts(lines, "cupy", 1)
    assert int(empty["releasable"]) == MIB  # nothing is in use, so all is whole
    assert "releasable" not in used and int(used["reserved"]) == 2 * MIB
    assert used["pinned_free"] == "4"


def test_pickle_is_private_and_follows_nothing(tmp_path):
    torch = torch_with([segment(block(MIB))])
    modules = {"torch": torch, "os": os, "pickle": pickle}
    path = tmp_path / "report.torch.pickle"
    assert f"= {path}" in ask(modules, snapshot=str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert pickle.loads(path.read_bytes())["segments"][0]["total_size"] == MIB
    before = path.read_bytes()
    assert any("FileExistsError" in line for line in ask(modules, snapshot=str(path)))
    assert path.read_bytes() == before
    link = tmp_path / "link.torch.pickle"
    link.symlink_to(tmp_path / "elsewhere")
    assert any(line.startswith("- torch ") for line in ask(modules, snapshot=str(link)))
    assert link.is_symlink() and not (tmp_path / "elsewhere").exists()
    foreign = tmp_path / "taken.torch.pickle.tmp"
    foreign.write_text("not ours")
    assert any("FileExistsError" in line
               for line in ask(modules, snapshot=str(tmp_path / "taken.torch.pickle")))
    assert foreign.read_text() == "not ours"
    torch.cuda.memory._snapshot = lambda: {"segments": lambda: 0}
    assert any(line.startswith("- torch ")
               for line in ask(modules, snapshot=str(tmp_path / "no.torch.pickle")))
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "link.torch.pickle", "report.torch.pickle", "taken.torch.pickle.tmp"]


def jax_with(held, ids=(0,), profile=None):
    """JAX on these devices; what it holds as in framework_modules/jax/profiler.py."""
    spec = importlib.util.spec_from_file_location(
        "stub_profiler", ROOT / "tests/programs/framework_modules/jax/profiler.py")
    profiler = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(profiler)
    profiler.held = held
    if profile is not None:
        profiler.device_memory_profile = lambda: profile
    stats = {"pool_bytes": 12 << 30, "bytes_limit": 13 << 30, "bytes_in_use": 5 << 30}
    places = [types.SimpleNamespace(id=one, local_hardware_id=one, memory_stats=lambda: stats)
              for one in ids]
    client = types.SimpleNamespace(local_devices=lambda: places)
    return {"jax": types.SimpleNamespace(profiler=profiler), "zlib": zlib,
            "jax._src.xla_bridge": types.SimpleNamespace(_backends={"cuda": client})}


def held_lines(lines):
    return [line[2:] for line in lines if line.startswith("* ")]


def test_arrays_of_jax_are_counted_at_the_newest_line_of_the_program():
    package = ("/v/lib/python3.11/site-packages/jax/_src/core.py", "bind", 705)
    lines = ask(jax_with([
        ([package, ("/me/train.py", "load", 300), ("/me/run.py", "<module>", 2)], 2, 7 << 20,
         "buffer", "cuda:0"),
        ([package, ("/me/train.py", "load", 300), ("/me/run.py", "again", 3)], 1, 1 << 20,
         "buffer", "cuda:0"),
        ([("<string>", "<module>", 1), package], 1, 5, "buffer", "cuda:0"),
        ([("/me/a b.py", "<lambda>", 1)], 3, 9 << 20, "buffer", "cuda:0"),
        ([("/me/train.py", "load", 300)], 1, 0, "executable", None)]))
    assert held_lines(lines) == ["jax 0 arrays %d 3 a b.py:1 <lambda>" % (9 << 20),
                                 "jax 0 arrays %d 3 train.py:300 load" % (8 << 20),
                                 "jax 0 arrays 5 1 no line of the program"]
    assert facts(lines, "jax")["limit"] == str(13 << 30)


def test_arrays_of_jax_are_told_device_by_device():
    lines = ask(jax_with([([("/me/a.py", "f", 1)], 1, 5, "buffer", "cuda:1"),
                          ([("/me/a.py", "f", 1)], 1, 6, "buffer", "cuda:0"),
                          ([("/me/a.py", "f", 1)], 1, 7, "buffer", "cpu:0")], ids=(0, 1)),
                devices="0 1")
    assert held_lines(lines) == ["jax 0 arrays 6 1 a.py:1 f", "jax 1 arrays 5 1 a.py:1 f"]


def test_lines_beyond_the_largest_are_one_line_that_adds_up():
    lines = held_lines(ask(jax_with([([("/me/a.py", "f", i)], 1, 1000 + i, "buffer", "cuda:0")
                                     for i in range(100)])))
    assert len(lines) == 65 and lines[-1] == "jax 0 rest %d 36 36 other lines" % sum(
        1000 + i for i in range(36))


@pytest.mark.parametrize("profile", [b"", b"no profile", zlib.compress(b"\xff" * 50, wbits=31)])
def test_profile_that_cannot_be_read_leaves_what_jax_holds(profile):
    lines = ask(jax_with([], profile=profile))
    assert facts(lines, "jax")["used"] == str(5 << 30)
    assert any(line.startswith("- jax ") for line in lines) and not held_lines(lines)

"""What happens when memory runs out, through each way to reach the driver."""
import pytest

from hosts import MIB, PROGRAMS, ROOT

PROGRAMS_SOURCE = ROOT / "tests" / "programs"


def line_of(name, mark):
    lines = (PROGRAMS_SOURCE / name).read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.endswith(mark)]
    return number


def has_own_frames(program):
    """Frames of a host with the library inside count as the library's: no line is told apart."""
    return program("leak").suffix != ".inside"


def test_pending_free_is_synchronized_and_the_allocation_succeeds(host, program):
    bare = host(program("scenario_3"), preload=False)
    assert "allocation behind a pending free 2\n" in bare.stdout
    run = host(program("scenario_3"))
    assert run.code == 0, run.stdout + run.stderr
    assert "allocation behind a pending free 0\n" in run.stdout
    assert run.report.outcome == "recovered"
    assert run.report.code in ("pending-free", "cache-held")
    assert run.report.steps("sync")


def test_pending_free_without_recovery_fails_as_without_the_library(same, program):
    run = same(program("scenario_3"), env={"GPUOOMSHIM_RETRY": "off"})
    # The host synchronizes by itself then and asks for the same again.
    assert run.report.outcome == "recovered-by-caller"
    assert run.report.code in ("pending-free", "cache-held")


def test_own_live_memory_is_exhausted_by_process(same, program):
    run = same(program("scenario_4"))
    report = run.report
    assert report.outcome == "failed"
    assert report.code == "exhausted-by-process"
    # 12,288 of the 15,872 free MiB are live and 8,192 were asked.
    assert report.json["request"]["bytes"] == 8192 * MIB
    assert report.ledger()["live_pool"] == 12288 * MIB
    # Nothing is idle, so nothing is trimmed and nothing asked again, and the report says why.
    (trim,) = report.steps("trim")
    assert (trim["result"], trim["reason"]) == ("skipped", "no pool holds idle memory")
    assert report.json["request"]["attempts"] == 1
    assert report.json["verdict"]["short_bytes"] == 4608 * MIB


def test_other_process_is_named_with_its_pid(same, program, tmp_path):
    run = same(program("scenario_5"), "stays",
               env={"GPUSIM_STATE": str(tmp_path / "state")})
    report = run.reports[0]
    assert report.code == "exhausted-by-others"
    (pid,) = [int(line.split("=")[1]) for line in run.stderr.splitlines()
              if line.startswith("holder: pid=")]
    (holder,) = [p for p in report.json["processes"] if p["pid"] == pid]
    assert holder["used_bytes"] >= 10240 * MIB
    assert str(pid) in report.text


def test_other_process_that_nvml_hides_is_a_hidden_line(same, program, tmp_path):
    run = same(program("scenario_5"), "stays",
               env={"GPUSIM_STATE": str(tmp_path / "state"), "GPUSIM_NVML": "own"})
    report = run.reports[0]
    assert report.code == "exhausted-by-others"
    assert report.ledger()["hidden"] >= 10240 * MIB
    assert report.json["incomplete"]


def test_owner_of_what_is_mapped_here_is_not_told_to_end(same, program, tmp_path):
    report = same(program("ipc_full"), env={"GPUSIM_STATE": str(tmp_path / "state")}).report
    assert report.code == "exhausted-by-others"
    assert report.ledger()["others"] >= 10240 * MIB
    verdict = report.json["verdict"]
    assert any("10.00 GiB are mapped here (IPC)" in line for line in verdict["evidence"])
    assert "uses 10.00 GiB of that itself, mapped by IPC" in verdict["advice"][0]
    assert not any(line.startswith("End pid") for line in verdict["advice"])
    assert "10.00 GiB are mapped here from outside" in report.text


def test_half_empty_blocks_are_fragmentation(same, program):
    run = same(program("scenario_6"), "1024")
    report = run.reports[-1]  # the first, if any, tells of the end of the filling
    assert report.json["request"]["bytes"] == 4 * MIB
    assert report.outcome == "failed"
    assert report.code == "fragmented"
    # Every other of 1,024 allocations of 1 MiB was freed: 512 MiB are stuck.
    assert report.ledger()["half_empty"] == 512 * MIB


def test_absurd_size_is_named_with_the_earlier_error(same, program):
    run = same(program("scenario_8"),
               env={"GPUSIM_FAIL": "cuLaunchKernel:209:1"})
    report = run.report
    assert report.code == "request-too-large"
    assert report.json["recovery"] == [] or \
        all(s["result"] == "skipped" for s in report.json["recovery"])
    assert "fffffffffffff000" in report.text.lower()
    assert "4096" in report.text
    assert "209" in report.text or "NO_BINARY_FOR_GPU" in report.text


def test_line_that_keeps_more_and_more_is_a_leak_and_the_victim_is_not(same, program):
    report = same(program("leak")).report
    verdict = report.json["verdict"]
    assert report.code == "leak"
    assert verdict["confidence"] == "likely" and verdict["runner_up"] == "exhausted-by-process"
    first, *others = report.json["sites"]
    assert first["live_bytes"] > 15000 * MIB and first["live_count"] > 1000
    assert sum(site["live_bytes"] for site in others) <= 512 * MIB
    assert report.series(first["site"])["trend"] == "steady"
    assert "GROWTH" in report.text
    if not has_own_frames(program):
        return
    # The frame of the line that keeps, not of the line that failed.
    suspect, victim = (f"leak.{program('leak').suffix[1:]}+0x{stack['native'][0]['offset']:x}"
                       for stack in (first["stack"], report.json["request"]["stack"]))
    assert verdict["summary"].startswith(suspect + " keeps more and more")
    assert any(line.startswith(victim + ", where it failed, is not the cause")
               for line in verdict["evidence"])
    assert suspect in verdict["advice"][0]


def test_leak_is_not_blamed_on_who_has_only_a_context(same, program, tmp_path):
    report = same(program("leak"), "beside", env={"GPUSIM_STATE": str(tmp_path / "state")}).report
    verdict = report.json["verdict"]
    # Without the other's 512 MiB this request would have fitted, but not many of the next.
    assert verdict["short_bytes"] <= 512 * MIB == report.ledger()["children"]
    assert (report.code, verdict["runner_up"]) == ("leak", "exhausted-by-others")
    assert any("child processes hold 512.0 MiB" in line for line in verdict["evidence"])


def test_neighbour_that_is_not_the_cause_is_waited_for_when_asked(same, program, tmp_path):
    report = same(program("leak"), "beside", env={"GPUSIM_STATE": str(tmp_path / "state"),
                                                  "GPUOOMSHIM_WAIT": "300ms"}).report
    (wait,) = report.steps("wait")
    assert (report.code, wait["result"]) == ("leak", "timed out")


@pytest.mark.parametrize("twin, trend, said", [
    ("warm-up", ("flattened", "none"), ""),
    ("full", ("flattened",), ""),
    ("cache", ("flattened", "steps", "none"), ""),
    ("everything", ("steady",), "by many lines together"),
    ("callers", ("steady",), "Live memory grew"),
    ("sawtooth", ("none",), ""),
    ("longer", ("steady",), ""),
    ("load", ("steady",), "loads more than fits, or it leaks"),
])
def test_growth_that_is_no_leak_accuses_nobody(same, program, twin, trend, said):
    if twin in ("everything", "callers") and not has_own_frames(program):
        pytest.skip("its lines look the same")
    report = same(program("growth"), twin).report
    assert report.code == "exhausted-by-process"
    largest = report.json["sites"][0]["site"]
    assert report.series(largest)["trend"] in trend
    assert any(said in line for line in report.json["verdict"]["evidence"])
    assert "keeps more and more" not in report.text
    if twin != "everything":
        assert "not a leak of one line" not in report.text


def test_leak_in_python_is_named_by_its_line_on_the_first_screen(host, python):
    run = host(python, PROGRAMS_SOURCE / "leak_lines.py")
    assert run.code == 0, run.stdout + run.stderr
    report = run.report
    assert report.code == "leak"
    allocates, leaks, fails = (line_of("leak_lines.py", f"# {word}")
                               for word in ("allocates", "leaks", "fails"))
    place = f"leak_lines.py:{allocates} Block.__init__ <- leak_lines.py:"
    screen = " ".join(report.text.split("VERDICT")[0].split())
    assert f"leak (likely): {place}{leaks} step keeps more and more" in screen
    assert f"{place}{fails} step, where it failed, is not the cause" in report.text
    assert "loss.item()" in report.text


def test_line_that_leaks_through_several_callers_is_one_line(host, python):
    run = host(python, PROGRAMS_SOURCE / "leak_ways.py")
    assert run.code == 0, run.stdout + run.stderr
    allocates, leaks, fails = (line_of("leak_ways.py", f"# {word}")
                               for word in ("allocates", "leaks", "fails"))
    place = f"leak_ways.py:{allocates} allocate <- leak_ways.py:"
    screen = " ".join(run.report.text.split("VERDICT")[0].split())
    assert f"leak (likely): {place}{leaks} keeps keeps more and more" in screen
    assert "different stacks, added up" in run.report.text
    assert f"{place}{fails} uses, where it failed, is not the cause" in run.report.text


def test_address_space_limit_is_named(same, program):
    run = same(program("address_limit"))
    report = run.report
    assert report.code == "host-limit"
    assert "RLIMIT_AS" in report.text


def test_many_threads_failing_together_give_one_verdict(same, program):
    run = same(program("fail_together"), "32")
    assert {report.code for report in run.reports} == {"exhausted-by-process"}
    assert len(run.reports) == 1


def test_child_after_fork_fails_alone_and_starts_with_an_empty_table(same, program):
    run = same(program("forked"))
    assert run.told("live_bytes") == [0]
    report = run.report
    assert (report.code, report.json["verdict"]["confidence"]) == ("forked", "proven")
    process = report.json["process"]
    assert process["initialised_pid"] not in (0, process["pid"])
    assert f"Process {process['initialised_pid']} initialised CUDA" in report.text
    assert report.json["request"]["attempts"] == 1
    assert all(step["result"] == "skipped" for step in report.json["recovery"])


def test_children_forked_amid_other_threads_get_their_error_and_end(same, program):
    run = same(program("forked_busy"), env={"GPUOOMSHIM_REPORT_MAX": "1"})
    assert {report.code for report in run.reports} == {"forked"}


def test_pinned_memory_that_the_host_lacks_leaves_the_device_alone(same, program):
    report = same(program("host_memory"), "available").report
    assert report.code == "host-memory"
    assert report.outcome == "failed"
    verdict = report.json["verdict"]
    assert verdict["short_bytes"] > 0 and verdict["device"] == -1
    steps = {step["step"]: step for step in report.json["recovery"]}
    assert {step["result"] for step in steps.values()} == {"skipped"}
    assert steps["trim"]["reason"] == "the request is for the host's memory"
    assert report.json["pools"][0]["reserved_bytes"] == 1024 * MIB


def test_pinned_memory_beyond_the_limit_of_locked_memory_names_it(same, program):
    report = same(program("host_memory"), "locked", env={"GPUSIM_HOST_MEMORY": "64"}).report
    assert report.code == "host-limit"
    assert "RLIMIT_MEMLOCK" in report.text
    assert report.json["host"]["locked_limit_bytes"] == MIB


def test_runtime_program_names_what_was_written_and_keeps_last_errors(same):
    run = same(PROGRAMS / "runtime_pair.runtime")
    assert run.report.json["request"]["api"] == "cudaMalloc"
    assert run.report.code == "exhausted-by-process"
    assert run.told("live_bytes")[-1] == 0


def test_rescued_runtime_program_has_a_clean_last_error(host):
    run = host(PROGRAMS / "runtime_recovered.runtime")
    assert run.code == 0, run.stdout + run.stderr
    assert "allocation behind a pending free 0\n" in run.stdout
    assert "last error agrees 1\n" in run.stdout
    assert run.report.outcome == "recovered"
    assert run.report.json["request"]["api"] == "cudaMalloc"

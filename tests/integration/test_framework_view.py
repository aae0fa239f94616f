"""What torch, CuPy and JAX say they hold: in the ledger, the verdict and the report."""
import pickle
import stat

import pytest
import pythons

from hosts import MIB, PROGRAMS, ROOT
from test_flush import outcomes, the_step
from test_verdicts import worked_example

HOST = ROOT / "tests" / "programs" / "framework_host.py"
PATIENT = {"STUBS": str(PROGRAMS), "GPUOOMSHIM_FRAMEWORK_BUDGET": "20s"}
LOOK_ONLY = {"GPUOOMSHIM_RETRY": "off"}
NOT_ASKED = "what frameworks say they hold (not asked: the failing thread holds the GIL)"
gil_or_not = pytest.mark.parametrize("gil", [[], ["gil"]], ids=["without-gil", "with-gil"])


@pytest.fixture
def frameworks(host, python):
    def run(*words, version=None, env=None, **options):
        return host(version or python, HOST, *words, env=dict(PATIENT, **(env or {})), **options)

    return run


def said(report, name="torch"):
    found = [entry for entry in report.json["frameworks"] if entry["name"] == name]
    assert len(found) <= 1, found
    return found[0] if found else None


def unseen(report, name):
    return [line for line in report.json["incomplete"] if line.startswith(f"what {name} says")]


@pytest.mark.parametrize("version", pythons.of_versions(pythons.KNOWN))
def test_idle_memory_is_measured_and_a_line_of_the_ledger(frameworks, version):
    run = frameworks("idle", version=version, env=LOOK_ONLY)
    assert outcomes(run) == ["ask 2"], run.stderr
    assert run.told("asked") == [1]
    report = run.report
    torch = said(report)
    assert (torch["reserved_bytes"], torch["used_bytes"]) == (15360 * MIB, 3072 * MIB)
    assert (torch["idle_bytes"], torch["releasable_bytes"]) == (12288 * MIB, 12288 * MIB)
    assert torch["segments"]["count"] == 15 and not torch["late"]
    ledger = {line["item"]: line for line in report.device()["ledger"]}
    assert ledger["framework_idle"]["bytes"] == 12288 * MIB
    assert ledger["framework_idle"]["source"] == "measured"
    assert ledger["live_device"]["bytes"] == 3072 * MIB
    assert (report.code, report.json["verdict"]["confidence"]) == ("cache-held", "proven")
    assert report.json["verdict"]["holder"] == "torch"
    assert "torch 15.00 GiB reserved, 3.00 GiB in use" in report.text
    assert "FRAMEWORKS" in report.text and "unused by frameworks 12.0" in report.text


@pytest.mark.parametrize("version", pythons.of_versions(pythons.KNOWN))
def test_frameworks_are_not_asked_by_a_thread_that_holds_the_gil(frameworks, version):
    run = frameworks("idle", "gil", version=version, env=LOOK_ONLY)
    assert outcomes(run) == ["ask 2"], run.stderr
    assert run.told("asked") == [0]
    report = run.report
    assert said(report) is None
    assert NOT_ASKED in report.json["incomplete"] and NOT_ASKED in report.text
    assert (report.code, report.json["verdict"]["confidence"]) == ("cache-held", "possible")


def test_program_without_frameworks_lacks_no_answer_of_theirs(frameworks):
    report = frameworks("without", "gil", env=LOOK_ONLY).report
    assert NOT_ASKED not in report.json["incomplete"]


def test_whom_it_was_measured_at_is_flushed_all_the_same(frameworks):
    report = frameworks("idle").report
    assert (report.outcome, report.code) == ("recovered", "cache-held")
    assert the_step(report)["result"] == "helped"


def test_whose_cache_no_stack_shows_is_flushed_by_its_own_word(frameworks):
    report = frameworks("idle", env={"GPUOOMSHIM_STACK": "python"}).report
    assert (report.outcome, report.code) == ("recovered", "cache-held")
    assert the_step(report)["result"] == "helped"


def test_who_says_that_it_uses_all_is_not_flushed(frameworks):
    report = frameworks("in_use", env={"GPUOOMSHIM_STACK": "python"}).report
    assert report.outcome == "failed"
    assert "too little" in the_step(report)["reason"]


def test_pieces_that_live_blocks_pin_are_no_cache_that_could_be_given_back(frameworks):
    run = frameworks("others_in_pieces", env=LOOK_ONLY)
    assert outcomes(run) == ["ask 2"]
    report = run.report
    assert (report.code, report.json["verdict"]["confidence"]) == ("fragmented", "likely")
    assert said(report)["releasable_bytes"] == 0
    fragmentation = report.device()["fragmentation"]
    assert fragmentation["framework_stuck_bytes"] == 30 * 510 * MIB
    pieces, unused, share = worked_example()["frameworks"]
    assert fragmentation["framework_stuck_bytes"] == pieces * MIB
    assert fragmentation["framework_idle_bytes"] == unused * MIB
    assert fragmentation["framework_permille"] == int(share * 10)


@gil_or_not
def test_torch_in_pieces_is_found_when_it_asked_for_itself(frameworks, gil):
    bare = frameworks("own_in_pieces", *gil, preload=False)
    assert outcomes(bare) == ["torch asks 2"]
    run = frameworks("own_in_pieces", *gil)
    assert outcomes(run) == ["torch asks 2"]
    report = run.report
    torch = said(report)
    assert torch["late"] and torch["segments"]["pinned_count"] == 30
    assert torch["largest_free_bytes"] == 510 * MIB
    assert torch["segments"]["fitting_bytes"] == 0
    verdict = report.json["verdict"]
    assert (verdict["code"], verdict["confidence"]) == ("fragmented", "likely")
    assert "30 pieces, the largest of 510.0 MiB" in verdict["summary"]
    assert "expandable_segments:True" in verdict["advice"][0]
    assert "max_split_size_mb" in verdict["advice"][1]
    assert report.ledger()["framework_idle"] == 30 * 510 * MIB
    assert not unseen(report, "the framework that asked")
    first, second = run.lines_of_shim
    assert "exhausted-by-process" in first and "fragmented" in second


def test_pieces_that_growth_leaves_behind_are_not_its_cause(frameworks):
    run = frameworks("own_grows")
    assert outcomes(run) == ["torch asks 2"]
    verdict = run.report.json["verdict"]
    assert said(run.report)["segments"]["pinned_count"] == 62
    assert (verdict["code"], verdict["runner_up"]) == ("exhausted-by-process", "fragmented")
    evidence = " ".join(verdict["evidence"])
    assert "grew steadily" in evidence and "620.0 MiB, would have lasted for about 2" in evidence
    assert "keep all that?" in verdict["advice"][1]
    assert "expandable_segments:True" in " ".join(verdict["advice"])


def test_what_torch_has_switched_on_itself_is_not_advised(frameworks):
    report = frameworks("own_in_pieces", "expandable").report
    assert report.code == "fragmented"
    assert said(report)["expandable_segments"] == "on"
    advice = " ".join(report.json["verdict"]["advice"])
    assert "expandable_segments" not in advice and "large tensors first" in advice


def test_what_the_program_told_torch_and_cupy_is_not_advised_again(frameworks):
    report = frameworks("idle", "told", env=LOOK_ONLY).report
    torch = said(report)
    assert (torch["collects"], torch["limited"]) == ("on", "on")
    assert torch["settings"] == "expandable_segments:False,garbage_collection_threshold:0.8"
    advice = " ".join(report.json["verdict"]["advice"])
    assert "garbage_collection_threshold" not in advice
    assert "Keep a larger margin" in advice
    report = frameworks("idle", env=LOOK_ONLY).report
    assert (said(report)["collects"], said(report)["limited"]) == ("off", "off")
    advice = " ".join(report.json["verdict"]["advice"])
    assert "garbage_collection_threshold:0.8. It works together with a limit" in advice


def test_torch_that_uses_all_it_has_is_no_fragmentation(frameworks):
    report = frameworks("own_in_use").report
    assert report.code == "exhausted-by-process"
    assert said(report)["idle_bytes"] == 0
    assert "opaque" not in report.text


def test_switched_off_segments_stay_opaque(frameworks):
    report = frameworks("others_in_pieces",
                        env=dict(LOOK_ONLY, GPUOOMSHIM_FRAMEWORK_BUDGET="0")).report
    assert report.json["frameworks"] == []
    assert "opaque" in report.text


def test_torch_in_pieces_that_says_nothing_is_exhausted_and_opaque(frameworks):
    report = frameworks("own_in_pieces", "silent", env={"GPUOOMSHIM_FRAMEWORK_BUDGET": "0"}).report
    assert (report.code, report.outcome) == ("exhausted-by-process", "failed")
    assert "opaque" in report.text
    assert "expandable_segments:True" in report.json["verdict"]["advice"][0]


def test_failure_that_torch_survives_asks_nothing(frameworks):
    run = frameworks("survives")
    assert outcomes(run) == ["torch asks 0"]
    assert run.told("asked") == [0]
    assert run.files == [] and run.lines_of_shim == []


def test_failure_that_torch_survives_is_reported_if_asked_for(frameworks):
    run = frameworks("survives", env={"GPUOOMSHIM_REPORT_ON": "all"})
    assert outcomes(run) == ["torch asks 0"]
    assert run.told("asked") == [0]
    assert run.report.outcome == "recovered-by-caller"
    assert run.lines_of_shim == []


def test_first_attempt_of_torch_leaves_nothing_when_the_second_surfaces(frameworks):
    run = frameworks("own_in_pieces", env={"GPUOOMSHIM_REPORT_ON": "all"})
    assert outcomes(run) == ["torch asks 2"]
    assert (run.report.outcome, run.report.code) == ("failed", "fragmented")


@gil_or_not
def test_failing_call_does_not_wait_for_a_late_answer(frameworks, gil):
    run = frameworks("own_is_not_kept_waiting", *gil, timeout=40)
    assert outcomes(run) == ["torch asks 2"]
    assert run.report.code == "fragmented"


def test_end_of_a_story_does_not_wait_for_a_late_answer(frameworks):
    run = frameworks("own_then_survives")
    assert outcomes(run) == ["torch asks 2", "torch asks 0"]
    assert run.report.outcome == "recovered-by-caller"


def test_process_that_is_gone_at_once_leaves_a_whole_report(frameworks):
    """Perhaps while it is being written anew: then a draft may be left, but never half a report."""
    run = frameworks("own_then_exits")
    assert run.code == 0
    assert [name for name in run.files if not name.endswith((".txt", ".json", ".tmp"))] == []
    report = run.report
    assert said(report) or unseen(report, "the framework that asked")


@gil_or_not
def test_program_that_dies_of_it_leaves_a_whole_report(frameworks, gil):
    bare = frameworks("own_then_raises", *gil, preload=False)
    run = frameworks("own_then_raises", *gil)
    assert (run.code, run.stdout) == (bare.code, bare.stdout) == (1, "outcome: torch asks 2\n")
    report = run.report
    assert said(report) or unseen(report, "the framework that asked")
    assert report.code == ("fragmented" if said(report) else "exhausted-by-process")


def test_interpreter_that_ends_meanwhile_is_left_alone(frameworks):
    run = frameworks("own_then_ends", timeout=30)
    assert run.code == 0, run.stderr
    assert run.report.code in ("exhausted-by-process", "fragmented")


def test_fork_while_an_answer_is_on_its_way(frameworks):
    run = frameworks("own_then_forks", timeout=30)
    assert outcomes(run) == ["torch asks 2", "child 7"]
    assert run.report.code == "fragmented"


def test_framework_whose_lock_is_held_costs_its_budget_and_the_flush_waits_on(frameworks):
    run = frameworks("stuck", env={"GPUOOMSHIM_FRAMEWORK_BUDGET": "100ms"})
    assert outcomes(run) == ["ask 0"]
    assert any("GPUOOMSHIM_FRAMEWORK_BUDGET" in line for line in run.report.json["incomplete"])
    run = frameworks("stuck", env={"GPUOOMSHIM_FRAMEWORK_BUDGET": "100ms",
                                   "GPUOOMSHIM_FLUSH_BUDGET": "200ms"})
    assert outcomes(run) == ["ask 2"]
    assert run.told("waited_ms")[0] < 3000
    assert "has not ended" in the_step(run.report)["reason"]


@pytest.mark.parametrize("situation, words", [
    (["raises"], "SystemExit: no_way"),
    (["lacks"], "memory_stats"),
    (["nonsense", "negative"], "not an amount"),
    (["nonsense", "huge"], "make no sense"),
    (["nonsense", "more-used"], "make no sense"),
    (["nonsense", "words"], "ValueError"),
    (["nonsense", "renamed"], "KeyError"),
], ids=lambda value: "-".join(value) if isinstance(value, list) else "")
def test_framework_that_gives_no_sense_stays_unknown(frameworks, situation, words):
    run = frameworks(*situation, env=LOOK_ONLY)
    assert outcomes(run) == ["ask 2"]
    report = run.report
    assert said(report) is None
    (line,) = unseen(report, "torch")
    assert words in line
    assert report.ledger()["framework_idle"] == 0
    assert (report.code, report.json["verdict"]["confidence"]) == ("cache-held", "possible")


def test_failure_while_telling_starts_no_recovery_of_its_own(frameworks):
    run = frameworks("allocates", env=LOOK_ONLY)
    assert run.told("wanted") == [2]
    assert said(run.report)["reserved_bytes"] == 15360 * MIB


def test_recorded_history_is_not_walked(frameworks):
    run = frameworks("history", env=LOOK_ONLY)
    assert run.told("walked") == []
    torch = said(run.report)
    assert torch["reserved_bytes"] == 15360 * MIB and torch["segments"] is None
    assert torch["releasable_bytes"] is None
    assert run.report.json["verdict"]["confidence"] == "likely"


def test_back_end_of_jax_is_never_initialised(frameworks):
    run = frameworks("other_frameworks", env=LOOK_ONLY)
    assert outcomes(run) == ["ask 2"]
    assert said(run.report, "jax") is None and not unseen(run.report, "jax")
    cupy = said(run.report, "cupy")
    assert (cupy["reserved_bytes"], cupy["used_bytes"]) == (2048 * MIB, 1024 * MIB)
    run = frameworks("other_frameworks", "initialised", env=LOOK_ONLY)
    jax = said(run.report, "jax")
    assert (jax["reserved_bytes"], jax["largest_free_bytes"]) == (3072 * MIB, 512 * MIB)
    assert run.report.json["verdict"]["confidence"] != "proven"


def test_snapshot_that_the_program_wants_has_the_view_too(frameworks):
    report = frameworks("snapshot").report
    assert report.json["kind"] == "snapshot"
    assert said(report)["idle_bytes"] == 12288 * MIB


@pytest.mark.parametrize("situation", ["idle", "own_in_pieces"])
def test_torchs_own_snapshot_lies_beside_the_report(frameworks, situation):
    run = frameworks(situation, env=dict(LOOK_ONLY, GPUOOMSHIM_TORCH_SNAPSHOT="1"))
    path = run.report.path.with_suffix(".torch.pickle")
    assert run.report.json["torch_snapshot"] == str(path)
    assert str(path) in run.report.text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with path.open("rb") as file:
        snapshot = pickle.load(file)
    reserved = sum(segment["total_size"] for segment in snapshot["segments"])
    assert reserved == said(run.report)["reserved_bytes"]
    assert len(run.files) == 3


def test_snapshot_is_not_written_unless_asked_for(frameworks):
    assert len(frameworks("idle", env=LOOK_ONLY).files) == 2

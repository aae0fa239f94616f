"""Frameworks and programs that keep idle memory give it back while a failing call waits."""
import pytest

import pythons
from hosts import MIB, PROGRAMS, ROOT

HOST = ROOT / "tests" / "programs" / "flush_host.py"
STUBS = {"STUBS": str(PROGRAMS)}


@pytest.fixture
def flush(host, python):
    def run(*words, version=None, env=None, **options):
        return host(version or python, HOST, *words, env=dict(STUBS, **(env or {})), **options)

    return run


def outcomes(run):
    prefix = "outcome: "
    return [line[len(prefix):] for line in run.stdout.splitlines() if line.startswith(prefix)]


def the_step(report):
    (step,) = report.steps("flush")
    return step


@pytest.mark.parametrize("version", pythons.of_versions(pythons.KNOWN))
@pytest.mark.parametrize("gil", [[], ["gil"]], ids=["without-gil", "with-gil"])
def test_idle_memory_of_torch_serves_who_asks(flush, version, gil):
    bare = flush("cached", *gil, version=version, preload=False)
    assert outcomes(bare) == ["ask 2"], bare.stderr
    run = flush("cached", *gil, version=version)
    assert outcomes(run) == ["ask 0"], run.stderr
    assert run.told("emptied") == [1]
    report = run.report
    assert (report.outcome, report.code) == ("recovered", "cache-held")
    assert report.json["verdict"]["confidence"] == "proven"
    assert the_step(report)["result"] == "helped"
    assert the_step(report)["freed_bytes"] == 12288 * MIB
    assert "torch kept 12.00 GiB" in report.text
    assert report.json["request"]["requester"] == "libnccl.so.2"


@pytest.mark.parametrize("stack", [("STACK", "python"), ("STACK", "off"), ("STACK_DEPTH", "1"),
                                   ("STACK_DEPTH", "2")], ids="-".join)
def test_stacks_that_do_not_show_who_asked_keep_nobody_from_being_flushed(flush, stack):
    name, value = stack
    run = flush("cached", env={f"GPUOOMSHIM_{name}": value})
    assert outcomes(run) == ["ask 0"], run.stderr
    assert (run.report.outcome, run.report.code) == ("recovered", "cache-held")
    assert the_step(run.report)["reason"] == "torch"


def test_who_uses_it_is_no_proof_where_no_stack_shows_who_asked(flush):
    run = flush("own_fails", env={"GPUOOMSHIM_STACK": "python"})
    verdict = run.report.json["verdict"]
    assert (verdict["code"], verdict["confidence"]) == ("exhausted-by-process", "likely")
    assert any("do not show which library" in line for line in verdict["evidence"])


def test_what_the_helper_frees_is_off_the_books(flush):
    run = flush("cached", env={"GPUOOMSHIM_EXIT_REPORT": "1"})
    at_exit = run.reports[-1]
    assert at_exit.json["kind"] == "exit"
    assert sum(at_exit.live_bytes_by_kind().values()) == (3 + 1) * 1024 * MIB


def test_switched_off_nobody_is_asked(flush):
    run = flush("cached", env={"GPUOOMSHIM_RETRY": "sync,trim"})
    assert outcomes(run) == ["ask 2"]
    assert run.told("emptied") == [0]
    assert run.report.code == "cache-held"
    assert "torch keeps up to 15.00 GiB that it may not use" in run.report.text


@pytest.mark.parametrize("gil", [[], ["gil"]], ids=["without-gil", "with-gil"])
def test_framework_whose_lock_is_held_is_given_up_in_time(flush, gil):
    run = flush("sitting", *gil, env={"GPUOOMSHIM_FLUSH_BUDGET": "400ms"})
    assert outcomes(run)[:2] == ["ask while somebody sits inside torch 2", "ask again 2"]
    first, second = run.told("waited_ms")
    assert 400 <= first < 2500 and second < 1500
    step = the_step(run.reports[0])
    assert step["result"] == "timed out"
    assert "torch" in step["reason"]
    assert "has not ended" in the_step(run.reports[1])["reason"]
    assert outcomes(run)[2] == "the late flush did help"


def test_torch_that_gets_along_by_itself_is_left_alone(flush):
    run = flush("own")
    assert outcomes(run) == ["torch asks for itself 0"]
    assert run.told("emptied") == [0]
    assert run.files == [] and run.lines_of_shim == []


def test_torch_that_fails_for_good_is_not_asked_from_inside_itself(flush):
    run = flush("own_fails")
    assert outcomes(run) == ["torch asks for itself 2"]
    assert run.told("emptied") == [0]
    step = the_step(run.report)
    assert step["result"] == "skipped" and "allocator" in step["reason"]


def test_cache_that_could_not_be_enough_stays(flush):
    run = flush("too_little")
    assert outcomes(run) == ["ask 2"]
    assert run.told("emptied") == [0]


def test_thread_inside_torch_does_not_keep_others_from_flushing_it(flush):
    run = flush("crossed")
    assert outcomes(run) == ["inside torch 2", "ask 2"]
    assert run.told("emptied") == [1]
    # Both within the flush's 5 s and the recovery's 10 s: neither waited for the other.
    assert max(run.told("waited_ms")) < 3000
    flushed = [step for report in run.reports for step in report.steps("flush")]
    assert "no help" in [step["result"] for step in flushed]
    for report in run.reports:
        if [step for step in report.steps("flush") if step["result"] == "no help"]:
            assert report.code != "cache-held"
            assert not any("empty_cache" in line for line in report.json["verdict"]["advice"])


def test_nothing_is_tried_during_a_capture(flush):
    bare = flush("capturing", preload=False)
    run = flush("capturing")
    assert outcomes(run) == outcomes(bare) == ["ask 2", "end of capture 0"]
    assert run.told("emptied") == [0]
    assert all(step["result"] == "skipped" for step in run.report.json["recovery"])
    assert (run.report.code, run.report.outcome) == ("cache-held", "failed")
    assert "A graph was being captured" in run.report.text


def test_exception_is_caught_and_told(flush):
    run = flush("raises")
    assert run.code == 0
    assert outcomes(run) == ["ask 2"]
    assert "SystemExit: no way" in the_step(run.report)["reason"]


def test_failure_while_flushing_starts_no_recovery_of_its_own(flush):
    run = flush("allocates")
    assert outcomes(run) == ["ask 0"]
    assert run.told("wanted") == [2]
    assert run.report.outcome == "recovered"


@pytest.mark.parametrize("gil", [[], ["gil"]], ids=["without-gil", "with-gil"])
def test_ending_interpreter_is_left_alone(flush, gil):
    run = flush("finalizing", *gil, timeout=20)
    assert run.code == 0, run.stderr
    assert outcomes(run) == ["finalizing 1 ask 2"]


@pytest.mark.parametrize("gil", [[], ["gil"]], ids=["without-gil", "with-gil"])
def test_threads_failing_together_share_one_flush(flush, gil):
    run = flush("together", *gil)
    assert outcomes(run) == ["64 threads [0]"]
    assert run.told("emptied") == [1]
    assert run.report.outcome == "recovered"


def test_kernel_that_finds_no_room_is_launched_after_all(flush):
    assert outcomes(flush("launch", preload=False)) == ["launch 2"]
    run = flush("launch")
    assert outcomes(run) == ["launch 0"]
    assert run.report.json["request"]["api"] == "cuLaunchKernel"
    assert run.report.code == "cache-held"


@pytest.mark.parametrize("gil", [[], ["gil"]], ids=["without-gil", "with-gil"])
def test_pinned_memory_of_torch_serves_who_pins_and_the_device_stays(flush, gil):
    env = {"GPUSIM_HOST_MEMORY": "8192"}
    assert outcomes(flush("pinned", *gil, preload=False, env=env)) == \
        ["pin 2", "torch pins for itself 2"]
    run = flush("pinned", *gil, env=env)
    # torch is not asked from inside itself.
    assert outcomes(run) == ["pin 0", "torch pins for itself 2"]
    assert run.told("host_emptied") == [1] and run.told("emptied") == [0]
    rescued, failed = run.reports
    assert the_step(rescued)["result"] == "helped"
    assert the_step(rescued)["reason"] == "torch (pinned)"
    assert all(step["result"] == "skipped" for step in failed.json["recovery"])


def test_module_that_only_the_user_knows_is_asked(flush):
    assert outcomes(flush("keeper")) == ["ask 2"]
    run = flush("keeper", env={"GPUOOMSHIM_FLUSH": "absent:no, keeper:get_pool().free_all"})
    assert outcomes(run) == ["ask 0"]
    assert the_step(run.report)["reason"] == "absent is not imported, keeper"


def test_module_that_nobody_imported_is_told(flush):
    run = flush("keeper", env={"GPUOOMSHIM_FLUSH": "keepr:get_pool().free_all"})
    assert outcomes(run) == ["ask 2"]
    step = the_step(run.report)
    assert (step["result"], step["reason"]) == ("no help", "keepr is not imported")


@pytest.mark.parametrize("value", ["keeper", "keeper:", "keeper.get_pool().free_all"])
def test_function_that_cannot_be_one_is_said_at_the_start(flush, value):
    run = flush("keeper", env={"GPUOOMSHIM_FLUSH": value})
    assert outcomes(run) == ["ask 2"]
    assert f"GPUOOMSHIM_FLUSH={value} cannot be used" in run.lines_of_shim[0]
    assert the_step(run.report)["reason"] == "nobody was there to be asked"


def test_workspaces_of_cublas_go_where_the_user_says_so(flush):
    run = flush("workspaces")
    assert outcomes(run) == ["ask 2"]
    assert run.told("workspaces") == [3]
    run = flush("workspaces", env={"GPUOOMSHIM_FLUSH": "torch._C:_cuda_clearCublasWorkspaces,"
                                                       "torch.cuda:empty_cache"})
    assert outcomes(run) == ["ask 0"]
    assert run.told("workspaces") == [0]
    assert the_step(run.report)["freed_bytes"] == 3072 * MIB


def test_program_that_registered_is_asked_on_another_thread(host, program):
    bare = host(program("flush_callback"), preload=False)
    assert outcomes(bare) == ["allocation beside the program's cache 2"]
    run = host(program("flush_callback"))
    assert outcomes(run) == ["allocation beside the program's cache 0"]
    assert run.told("register") == [0, -17, -22]
    assert run.told("other_thread") == [1] and run.told("device") == [0]
    assert run.told("wanted") == [run.report.json["request"]["bytes"]]
    assert run.told("unregister") == [0, -2]
    assert run.told("live_count") == [1]
    assert the_step(run.report)["reason"] == "keeper"
    assert run.report.code == "cache-held"


def test_refusal_of_a_program_is_told(host, program):
    run = host(program("flush_callback"), "refuses")
    assert outcomes(run) == ["allocation beside the program's cache 2"]
    assert the_step(run.report)["reason"] == "keeper returned 42"


def test_program_that_takes_too_long_is_not_waited_for(host, program):
    run = host(program("flush_callback"), "late", env={"GPUOOMSHIM_FLUSH_BUDGET": "300ms"})
    assert outcomes(run) == ["allocation beside the program's cache 2"]
    assert the_step(run.report)["result"] == "timed out"
    assert run.told("unregister") == [-16, -2]  # a call of it still runs


def test_program_that_unregistered_is_not_asked(host, program):
    run = host(program("flush_callback"), "gone")
    assert outcomes(run) == ["allocation beside the program's cache 2"]
    assert run.told("calls") == [0]

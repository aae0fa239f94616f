"""A program that relies on the GIL, on its threads and on its collector runs out of memory.

    gil_host.py SITUATION [idle]

The extension is called with the GIL held.  torch (a stand-in) holds 15 GiB; "idle": 12 of them
are idle.
"""
import ctypes
import gc
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "framework_modules"))
import torch.cuda  # noqa: E402


def load(kind, name):
    return kind(os.path.join(os.environ["STUBS"], name))


nccl = load(ctypes.CDLL, "libnccl.so.2")
nccl.stub_nccl_ask.argtypes = [ctypes.c_size_t]
extension = load(ctypes.PyDLL, "libstub_extension.so")
MAIN = threading.get_ident()
IDLE = "idle" in sys.argv


def ask(mib=1024):
    """The GIL is given up."""
    return nccl.stub_nccl_ask(mib << 20)


def ask_with_gil(mib=1024, function="ask"):
    function = getattr(extension, "stub_extension_" + function)
    return function(nccl.stub_nccl_ask, ctypes.c_size_t(mib << 20))


def say(*words):
    print("outcome:", *words, flush=True)


def tell(name, value):
    print("shim: %s=%d" % (name, value), file=sys.stderr, flush=True)


def fill(mib=1024):
    for i in range(15):
        result, _ = torch.cuda.take(mib, 0 if IDLE and i < 12 else None)
        assert result == 0, result


def on_thread(function, daemon=False):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(function()), daemon=daemon)
    thread.start()
    thread.join()
    return answers[0]


class Elsewhere:
    """Somebody else who is in the section again and again, whenever the GIL can be had."""

    def __enter__(self):
        self.entered = self.ended = 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        while not self.entered:
            time.sleep(0.001)

    def run(self):
        while not self.ended:
            ask_with_gil(0)
            self.entered = 1
            time.sleep(0)

    def __exit__(self, *unused):
        self.ended = 1
        self.thread.join()
        say("overlaps", extension.stub_extension_overlaps())


def pause(*unused):
    """A framework's own code that gives others time."""
    time.sleep(0.2)


# --- the GIL is kept


def section():
    """The main thread is refused in a section that the GIL guards."""
    torch.cuda.before_telling = pause
    fill()
    with Elsewhere():
        say("ask", ask_with_gil())
    tell("asked", torch.cuda.asked)


def section_beside_a_flush():
    """It is refused in there while another thread has torch flushed."""
    flushing = threading.Event()

    def flush():
        flushing.set()
        pause()
    torch.cuda.before_emptying = flush
    fill()
    asker = threading.Thread(target=lambda: say("the other thread asks", ask()))
    with Elsewhere():
        asker.start()
        flushing.wait()
        say("ask", ask_with_gil(8192))
        asker.join()


def ends():
    """The program ends while a daemon thread is refused in a section that the GIL guards."""
    busy = threading.Event()

    class Last:
        """The end takes a while, in which whoever wants the GIL back is ended."""

        def __del__(self, sleep=time.sleep):
            sleep(1)

    def flush():
        busy.set()
        pause()

    def one():
        result = ask_with_gil()
        say("ask", result)
        busy.set()
    torch.cuda.before_emptying = flush
    fill()
    sys.last_of_all = Last()
    threading.Thread(target=one, daemon=True).start()
    busy.wait()


# --- a flush that really runs


def flush():
    """On the main thread, on another one, or on a daemon."""
    asked_on = []
    torch.cuda.before_emptying = lambda: asked_on.append(threading.get_ident())
    fill()

    def one():
        return ask_with_gil(), threading.get_ident()
    kind = sys.argv[2]
    result, thread = one() if kind == "main" else on_thread(one, kind == "daemon")
    say("ask", result)
    tell("emptied", torch.cuda.emptied)
    tell("on_failing_thread", asked_on == [thread])


def flush_while_raising():
    fill()

    def one():
        try:
            ask_with_gil(function="ask_while_raising")
        except ValueError as problem:
            return problem
    say("exception", on_thread(one))
    say("ask", ask_with_gil())
    tell("emptied", torch.cuda.emptied)


def wait():
    """Another process has the memory, and a thread that is not the main one holds the GIL."""
    if "hold" in sys.argv:
        say("holding", ask(10240))
        return sys.stdin.read()
    holder = subprocess.Popen([sys.executable, __file__, "wait", "hold"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"outcome: holding 0\n"
    say("ask", on_thread(lambda: ask_with_gil(8192)))
    holder.communicate()


# --- the collector


class Node:
    """A cycle: only the collector ends it."""
    threads = []

    def __init__(self):
        self.me = self

    def __del__(self):
        Node.threads.append(threading.get_ident())


def litter():
    """More than enough for the collector to be due."""
    return [[] for _ in range(3000)]


def say_finalizers():
    gc.collect()
    say("finalizers on the main thread only", Node.threads == [MAIN])
    say("thresholds", gc.get_threshold() == before)
    say("collector", gc.isenabled())


def finalizers():
    """What is asked makes much garbage."""
    torch.cuda.before_emptying = torch.cuda.before_telling = litter
    fill()
    gc.collect()
    Node()
    say("ask", ask())
    tell("asked", torch.cuda.asked)
    say_finalizers()


def finalizers_that_are_due():
    """The collector was due before anybody was asked."""
    fill()
    gc.collect()
    Node()
    say("ask", ask_with_gil(function="ask_with_collection_due"))
    tell("asked", torch.cuda.asked)
    say_finalizers()


def settings_of_the_host():
    """The host changes the collector's settings while torch is asked."""
    def change():
        gc.set_threshold(123, 4, 5)
        gc.disable()
    torch.cuda.before_emptying = change
    fill()
    say("ask", ask())
    say("thresholds", gc.get_threshold()[:2])
    say("collector", gc.isenabled())


def fork():
    """A thread forks while torch is asked: the child's collector goes on."""
    asked, forked = threading.Event(), threading.Event()

    def wait_for_fork():
        asked.set()
        forked.wait()
    torch.cuda.before_emptying = wait_for_fork
    fill()
    asker = threading.Thread(target=ask)
    asker.start()
    asked.wait()
    child = os.fork()
    if child == 0:
        os._exit(7 if gc.get_threshold() == before else 1)
    forked.set()
    say("child", os.waitpid(child, 0)[1] >> 8)
    asker.join()
    say("thresholds", gc.get_threshold() == before)


before = gc.get_threshold()
globals()[sys.argv[1]]()

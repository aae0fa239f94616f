"""Captures while the interpreter goes down, in finalizers and in a thread that stays."""
import atexit
import ctypes
import sys
import threading
import time

library = ctypes.PyDLL(sys.argv[1])
library.probe_open()


class Late:
    """Dies with the module, when most of the interpreter is gone."""

    capture = library.probe_site

    def __del__(self):
        self.capture()


def keep_capturing(capture=ctypes.CDLL(sys.argv[1]).probe_site, sleep=time.sleep):
    while True:
        capture()
        sleep(0.0001)


late = Late()
sys.late = Late()
atexit.register(library.probe_site)
library.probe_at_exit()
threading.Thread(target=keep_capturing, daemon=True).start()
time.sleep(0.05)
print('{"ended": true}', flush=True)

"""What the probe tells in an interpreter that it does not know."""
import ctypes
import json
import sys

library = ctypes.CDLL(sys.argv[1])
for name in ("version", "unsupported"):
    getattr(library, "probe_" + name).restype = ctypes.c_char_p


def told(text):
    return text.decode() if text else None


library.probe_open()
buffer = ctypes.create_string_buffer(1 << 16)
frames = library.probe_python(buffer, len(buffer))
native = library.probe_native(buffer, len(buffer))
print(json.dumps({
    "version": told(library.probe_version()),
    "unsupported": told(library.probe_unsupported()),
    "frames": frames,
    "native": native,
}))

"""A profile as jaxlib writes it: gzip'ed pprof, stacks newest first."""
import gzip

held = []  # (stack of (file, function, line), count, bytes, kind, device or None)


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def device_memory_profile():
    strings, places, functions = [""], {}, {}

    def string(words):
        if words not in strings:
            strings.append(words)
        return strings.index(words)

    samples = b""
    for stack, count, size, kind, device in held:
        ids = []
        for file, function, line in stack:
            one = functions.setdefault((file, function), len(functions) + 1)
            ids.append(places.setdefault((one, line), len(places) + 1))
        data = text(1, b"".join(map(varint, ids))) + text(2, varint(count) + varint(size))
        for key, value in (("kind", kind), ("device", device)):
            if value:
                data += text(3, number(1, string(key)) + number(2, string(value)))
        samples += text(2, data)
    profile = b""
    for unit in (("allocations", "count"), ("space", "bytes")):
        profile += text(1, number(1, string(unit[0])) + number(2, string(unit[1])))
    profile += samples
    for (one, line), place in places.items():
        profile += text(4, number(1, place) + text(4, number(1, one) + number(2, line)))
    for (file, function), one in functions.items():
        profile += text(5, number(1, one) + number(2, string(function)) +
                        number(4, string(file)))
    return gzip.compress(profile + b"".join(text(6, word.encode()) for word in strings))

_backends = {}


class Device:
    local_hardware_id = 0
    stats = {"pool_bytes": 3 << 30, "bytes_in_use": 1 << 30, "largest_free_block_bytes": 1 << 29}

    def memory_stats(self):
        return self.stats


class Client:
    def local_devices(self):
        return [Device()]


def initialise():
    _backends["cuda"] = Client()


def backends():
    raise AssertionError("nobody but the program initialises a back end")

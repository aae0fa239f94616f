import pickle  # noqa: F401  (as torch does)

def blocks(address, total, used):
    parts = [(address, used, "active_allocated"), (address + used, total - used, "inactive")]
    return [{"address": at, "size": size, "requested_size": size, "state": state, "frames": []}
            for at, size, state in parts if size]


def _snapshot(device=None):
    from torch import cuda
    segments = [{"device": 0, "address": address, "total_size": total, "allocated_size": used,
                 "active_size": used, "stream": 0, "segment_type": "large",
                 "segment_pool_id": (0, 0),
                 "is_expandable": cuda.settings["expandable_segments"],
                 "blocks": blocks(address, total, used)}
                for address, total, used in cuda.held()]
    return {"segments": segments, "device_traces": [[]], "allocator_settings": cuda.settings}

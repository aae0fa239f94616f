#!/usr/bin/env python3
"""A small training loop that runs out of GPU memory.

It has the classic mistake: the loss of every step is kept in a list "for the
plot", and with it everything that computed it.  Memory grows by a step's
activations until an innocent allocation fails.

With torch and a working GPU the loop is torch's; otherwise it talks to the
driver by ctypes, as a framework would, and the "tensors" are bare device
memory.  Exit status 3: out of memory, as expected.
"""
import ctypes
import functools
import sys

MIB = 1 << 20
OUT_OF_MEMORY = 3


class OutOfMemory(Exception):
    """The device had no room."""


class DriverTensor:
    """Device memory that is freed with its owner."""

    def __init__(self, cuda, address):
        self.cuda = cuda
        self.address = address

    def __del__(self):
        self.cuda.cuMemFree_v2(ctypes.c_uint64(self.address))


class DriverTensors:
    """The driver's own functions.  `empty` is the C function itself, with its
    result checked and wrapped afterwards: the line that calls it is the line
    that allocates, as with a framework's built-in."""

    out_of_memory = OutOfMemory

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.check(self.cuda.cuInit(0), "cuInit")
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "context")
        self.check(self.cuda.cuCtxSetCurrent(context), "context")
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint64),
                                     ctypes.c_size_t)
        self.empty = prototype(("cuMemAlloc_v2", self.cuda), ((2, "address"), (1, "size")))
        self.empty.errcheck = self.wrap

    @staticmethod
    def check(result, what):
        if result == 2:
            raise OutOfMemory(what)
        if result != 0:
            sys.exit(f"train_demo: {what} failed with {result}")

    def wrap(self, result, _function, arguments):
        self.check(result, f"allocation of {arguments[1] // MIB} MiB")
        return DriverTensor(self.cuda, arguments[0].value)

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.check(self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "info")
        return free.value


class TorchTensors:
    def __init__(self, torch):
        self.out_of_memory = torch.cuda.OutOfMemoryError
        self.empty = functools.partial(torch.empty, dtype=torch.uint8, device="cuda")
        self.free_bytes = lambda: torch.cuda.mem_get_info()[0]


def choose_tensors():
    try:
        import torch
        if torch.cuda.is_available():
            return TorchTensors(torch)
    except ImportError:
        pass
    return DriverTensors()


class Layer:
    def __init__(self, tensors, size):
        self.tensors = tensors
        self.size = size
        self.weight = tensors.empty(size)
        self.momentum = tensors.empty(size)

    def forward(self):
        return self.tensors.empty(self.size // 4)

    def backward(self):
        gradient = self.tensors.empty(self.size)
        del gradient


class Loss:
    """What a step computed, and all that is needed to differentiate it."""

    def __init__(self, value, activations):
        self.value = value
        self.activations = activations


def load_batch(tensors, size):
    return tensors.empty(size)


def train(tensors, layer_count=12):
    unit = max(tensors.free_bytes() // 128 // (2 * MIB), 1) * 2 * MIB
    layers = [Layer(tensors, unit) for _ in range(layer_count)]
    losses = []
    for step in range(10000):
        try:
            batch = load_batch(tensors, unit * 2)
            loss = Loss(1 / (step + 1), [layer.forward() for layer in layers])
            for layer in reversed(layers):
                layer.backward()
            losses.append(loss)  # the mistake: loss.value was meant
            del batch
        except tensors.out_of_memory as error:
            print(f"train_demo: step {step}: out of memory: {str(error).split('. ')[0]}")
            return OUT_OF_MEMORY
        if step % 5 == 0:
            print(f"train_demo: step {step}: loss {loss.value:.3f}, "
                  f"{tensors.free_bytes() // MIB} MiB free", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(train(choose_tensors()))

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
import sys

MIB = 1 << 20
OUT_OF_MEMORY = 3


class OutOfMemory(Exception):
    """The device had no room."""


class DriverTensors:
    """Device memory by the driver's own functions, freed with its owner."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.check(self.cuda.cuInit(0), "cuInit")
        context = ctypes.c_void_p()
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "context")
        self.check(self.cuda.cuCtxSetCurrent(context), "context")
        self.cuda.cuMemAlloc_v2.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.cuda.cuMemFree_v2.argtypes = [ctypes.c_uint64]

    @staticmethod
    def check(result, what):
        if result == 2:
            raise OutOfMemory(what)
        if result != 0:
            sys.exit(f"train_demo: {what} failed with {result}")

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.check(self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "info")
        return free.value

    def empty(self, size):
        return DriverTensor(self, size)


class DriverTensor:
    def __init__(self, driver, size):
        self.driver = driver
        self.address = ctypes.c_uint64()
        driver.check(driver.cuda.cuMemAlloc_v2(ctypes.byref(self.address), size),
                     f"allocation of {size // MIB} MiB")

    def __del__(self):
        if self.address.value:
            self.driver.cuda.cuMemFree_v2(self.address)


class TorchTensors:
    def __init__(self, torch):
        self.torch = torch

    def free_bytes(self):
        return self.torch.cuda.mem_get_info()[0]

    def empty(self, size):
        try:
            return self.torch.empty(size, dtype=self.torch.uint8, device="cuda")
        except self.torch.cuda.OutOfMemoryError as error:
            raise OutOfMemory(str(error).split(". ", maxsplit=1)[0]) from None


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
        except OutOfMemory as error:
            print(f"train_demo: step {step}: out of memory: {error}")
            return OUT_OF_MEMORY
        if step % 5 == 0:
            print(f"train_demo: step {step}: loss {loss.value:.3f}, "
                  f"{tensors.free_bytes() // MIB} MiB free", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(train(choose_tensors()))

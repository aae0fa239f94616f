#!/usr/bin/env python3
"""Milliseconds of one training step: a small transformer layer, eager mode.

The allocator is torch's own, so few calls reach the driver; what is measured is
the price of hooked launches.  Prints the median of 300 steps.
"""
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(77)
if not torch.cuda.is_available():
    sys.exit(77)

model = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.randn(16, 128, 512, device="cuda")


def step():
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()


times = []
for i in range(350):
    begin = time.perf_counter()
    step()
    if i >= 50:
        times.append((time.perf_counter() - begin) * 1000)
print(f"{statistics.median(times):.4f}")

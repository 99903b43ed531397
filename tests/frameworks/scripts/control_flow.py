"""Branches, loops and scans of PyTorch that a graph keeps: `cond`, `while_loop`, `scan`."""

import json

import torch
from texts import ON_CPU
from torch._higher_order_ops import scan, while_loop

device = torch.device("cpu") if ON_CPU else torch.accelerator.current_accelerator() or torch.device("cpu")


class Steps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)

    def forward(self, x):
        x = torch.cond(x.sum() > 0, lambda x: self.one(x), lambda x: self.other(x).tanh(), (x,))
        count = torch.zeros((), dtype=torch.int64, device=x.device)
        _, x = while_loop(lambda count, x: count < 4, lambda count, x: (count + 1, x * 0.5 + 1), (count, x))
        start = torch.zeros(16, device=x.device)
        return scan(lambda carry, row: (carry * 0.9 + row, carry + row), start, x, dim=0)


torch.manual_seed(0)
model = Steps().to(device)
values = []
# PyTorch's own compiler cannot decide a loop by a tensor's value on the CPU.
for function in (model, model if ON_CPU else torch.compile(model)):
    for sign in (1, -1):
        x = torch.arange(8 * 16, dtype=torch.float32).reshape(8, 16).to(device) / 64 * sign
        with torch.no_grad():
            last, rows = function(x)
        values += [last.sum().item(), rows.std().item()]
print(json.dumps({"device": last.device.type, "values": values}))

"""Each look-back rule, end to end, for PyTorch, JAX and NKI: fires on what is slow, and on nothing else."""

from __future__ import annotations

import re
import sys

import pytest

from tests.integration.commands.capturing import Workplace

PYTORCH = """
import sys, time, torch
model = torch.nn.Linear(64, 64).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
forward = torch.compile(model)
x = torch.ones(16, 64, device="neuron")
forward(x).sum().backward()
optimizer.step()
for number in range(8):
    if number == 5 and "slow" in sys.argv:
        held = torch.zeros(64 << 20, dtype=torch.uint8, device="neuron")
        forward = torch.compile(torch.nn.Linear(2048, 2048).to("neuron"))
        forward(torch.ones(2048, 2048, device="neuron")).sum().item()
    with torch.profiler.record_function("request"):
        if number == 5 and "slow" in sys.argv:
            time.sleep(3)
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
JAX = """
import sys, time, jax, jax.numpy as jnp
step = jax.jit(lambda w, x: w - 0.01 * (x.T @ (x @ w)))
w, x = jnp.ones((64, 64)), jnp.ones((16, 64))
step(w, x).block_until_ready()
for number in range(8):
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        if number == 5 and "slow" in sys.argv:
            held = jnp.zeros(64 << 20, jnp.uint8)
            large = jnp.ones((2048, 2048))
            step(large, large).block_until_ready()
        with jax.profiler.TraceAnnotation("request"):
            if number == 5 and "slow" in sys.argv:
                time.sleep(3)
            step(w, x).block_until_ready()
"""
NKI = """
import sys, time, numpy as np, torch
from neuron_tools import compat
compat.install()
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[1], 512):
        tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, start : start + 512])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[:, start : start + 512], src=tile)
    return out

x = torch.ones(128, 512, device="neuron")
double(x)
profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
profiler.start()
for number in range(8):
    if number == 5 and "slow" in sys.argv:
        held = torch.zeros(64 << 20, dtype=torch.uint8, device="neuron")
        double(torch.ones(128, 40960, device="neuron"))
    with torch.profiler.record_function("request"):
        if number == 5 and "slow" in sys.argv:
            time.sleep(3)
        double(x)
    profiler.step()
profiler.stop()
"""
PROGRAMS = {"PyTorch": PYTORCH, "JAX": JAX, "NKI": NKI}
RULES = ("error", "latency > 100us", "step > 2500ms", "range:request > 2500ms", "device_memory > 32MiB")
FAILING = "\nraise SystemExit(3)\n"


def alerts_of(workplace: Workplace, text: str, *arguments: str) -> set[str]:
    """The rules that are met by a program."""
    script = workplace.script("serve.py", text)
    options = [word for rule in RULES for word in ("--when", rule)]
    run = workplace.run("capture", "--last", "60s", *options, "--", sys.executable, script, *arguments)
    assert "was never looked at" not in run.stderr
    assert "Traceback" not in run.stderr
    met = re.findall(r"alert: (.*)", run.stderr)
    assert len(re.findall("Profile: ", run.stderr)) == min(1, len(met)) or len(met) > 1
    return {rule for rule in RULES if any(f"{rule}: " in line for line in met)}


@pytest.mark.slow
@pytest.mark.parametrize("framework", PROGRAMS)
def test_every_rule_fires_on_what_it_is_for(framework: str, workplace: Workplace) -> None:
    assert alerts_of(workplace, PROGRAMS[framework] + FAILING, "slow") == set(RULES)


@pytest.mark.slow
@pytest.mark.parametrize("framework", PROGRAMS)
def test_every_rule_is_silent_where_all_is_well(framework: str, workplace: Workplace) -> None:
    assert alerts_of(workplace, PROGRAMS[framework]) == set()

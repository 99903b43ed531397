"""How good the compiler's code is, by the bound of the graph itself, and how fast it is made.

The bound of a graph is max(FLOPs / peak, bytes of its inputs and outputs / bandwidth), bandwidth being what
a core can draw: the lesser of its HBM and its DMA engines. All in simulated time, on trn2, in bf16.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.fake_lowering import lower_fake
from benchmarks.figures import Figure, Target
from benchmarks.llama import HEAD_SIZE, Layer, Llama
from neuron_tools import hardware
from neuron_tools.compiler.codegen.types import memory_dtype
from neuron_tools.compiler.compile import compile_logical, compile_module
from neuron_tools.compiler.hlo import Module
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Program
from neuron_tools.simulator import simulate

LARGE_MODEL = "import benchmarks.compiler as b; b.print_large_model({layers})"


@frozen
class Case:
    """One graph whose code is judged: the least share of its bound that it must reach."""

    name: str
    module: Callable[[], Module]
    share: float


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *arguments: Any) -> Any:
        """Call the function."""
        return self._function(*arguments)


def run(quick: bool = False) -> list[Figure]:
    """All figures; `quick` compiles four layers of the large model instead of 32."""
    core = hardware.get("trn2")
    figures = [quality(case, core) for case in cases()]
    figures += [two_cores(case, least) for case, least in zip(cases()[::4], (1.85, 1.7))]
    figures += attribution(core)
    return figures + large_model(4 if quick else 32)


def cases() -> tuple[Case, ...]:
    """The graphs of the requirement, and some whose code is known to be weaker."""
    square = (4096, 4096)
    return (
        Case("matmul 4096^3", partial(_function, torch.matmul, square, square), 0.85),
        Case("softmax 4096 x 4096", partial(_function, _softmax, square), 0.8),
        Case("layernorm 4096 x 4096", partial(_function, _layer_norm, square, square[1:], square[1:]), 0.8),
        Case("GELU 4096 x 4096", partial(_function, F.gelu, square), 0.8),
        Case("Llama layer, sequence 4096", partial(llama_layer, 4096), 0.6),
        Case("decode step, 2048 cached", partial(decode_step, 2048), 0.75),
        Case("column sums 4096 x 4096", partial(_function, _column_sums, square), 0.0),
        Case("matrix x vector, 4096 x 4096", partial(_function, torch.matmul, square, square[1:]), 0.0),
    )


def llama_layer(length: int) -> Module:
    """A decoder layer: hidden 4096, 32 heads, on one sequence."""
    return lower_fake(Layer, lambda: (torch.empty(1, length, 4096), *_rotation(length)), "layer")


def decode_step(cached: int) -> Module:
    """The same layer for one token, with the keys and values of those before."""

    def arguments() -> tuple[Any, ...]:
        cache = tuple(torch.empty(1, 32, cached, HEAD_SIZE) for _ in range(2))
        return torch.empty(1, 1, 4096), *_rotation(1), cache

    return lower_fake(Layer, arguments, "decode")


def llama(layers: int, length: int = 2048) -> Module:
    """The 8-billion-parameter model with this many of its 32 layers."""

    def arguments() -> tuple[Any, ...]:
        return torch.empty(1, length, dtype=torch.int64), *_rotation(length)

    return lower_fake(lambda: Llama(layers), arguments, "llama")


def quality(case: Case, core: NeuronCore) -> Figure:
    """The share of its bound that a graph reaches."""
    module = case.module()
    duration_ns = simulate(compile_module(module, core), core).duration_ps / 1000
    share = bound_ns(module, core) / duration_ns
    target = Target(">=", case.share) if case.share else None
    return Figure(case.name, share, "of bound", target, note=f"{duration_ns / 1000:,.1f} us")


def two_cores(case: Case, least: float) -> Figure:
    """How many times faster a graph is on both physical cores of a logical one than on one of them."""
    module = case.module()
    alone, together = hardware.get("trn2", lnc=1), hardware.get("trn2", lnc=2)
    one = simulate(compile_module(module, alone), alone).duration_ps
    two = simulate(compile_logical(module, together), together).duration_ps
    note = f"{two / 1e6:,.1f} us"
    return Figure(f"{case.name}, LNC 2", one / two, "times one core", Target(">=", least), note=note)


def bound_ns(module: Module, core: NeuronCore) -> float:
    """max(FLOPs / peak, bytes / bandwidth) of a graph."""
    values = [module.values[value].type for value in {*module.parameters, *module.results}]
    byte_count = sum(type_.element_count * memory_dtype(type_.dtype).byte_count for type_ in values)
    bandwidth = min(core.hbm_bandwidth, core.dma_bandwidth)
    return max(product_flops(module) / core.peak_tensor_flops, byte_count / bandwidth) * 1e9


def product_flops(module: Module) -> int:
    """2 x multiply-accumulates of all dot products, whatever a mask hides."""
    total = 0
    for operation in module.operations:
        if operation.opcode == "dot_general":
            left = module.shape_of(operation.operands[0])
            axes = operation.attributes["dot_dimension_numbers"]["lhs_contracting_dimensions"]
            depth = int(np.prod([left[axis] for axis in axes]))
            total += 2 * depth * module.values[operation.results[0]].type.element_count
    return total


def attribution(core: NeuronCore) -> list[Figure]:
    """Share of instruction time that reaches a source line and a module path, for a Llama layer."""
    program = compile_module(llama_layer(1024), core)
    simulation = simulate(program, core)
    time = (simulation.end_ps - simulation.start_ps).astype(np.float64)
    total, placed, by_line = time.sum(), 0.0, 0.0
    for row, part in enumerate(np.bincount(program.instructions["hlo"], time, len(program.hlo))):
        operation = program.hlo[row]
        for owner, share in zip(operation.framework, operation.shares):
            framework = program.framework[owner]
            by_line += part * share
            placed += part * share * bool(framework.stack and framework.module_path)
    return [
        Figure("time that reaches line and module", placed / total, "of total", Target(">=", 0.98)),
        Figure("sum over lines, off the total by", abs(by_line / total - 1), "of total", Target("<=", 1e-9)),
    ]


def large_model(layers: int) -> list[Figure]:
    """Time and memory to lower, compile and simulate the large model, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", LARGE_MODEL.format(layers=layers)], capture_output=True, text=True, check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    seconds, gigabytes, share, instructions = map(float, done.stdout.split()[-4:])
    name = f"Llama 8B, {layers} layers, sequence 2048"
    note = f"{instructions / 1e6:.1f} M instructions, with imports"
    return [
        Figure(f"{name}: lower, compile, simulate", seconds, "s", Target("<=", 120, "python"), note=note),
        Figure(f"{name}: peak memory", gigabytes, "GiB", Target("<=", 8)),
        Figure(f"{name}: code", share, "of bound"),
    ]


def print_large_model(layers: int) -> None:
    """What `large_model` runs: prints seconds, GiB, share of the bound, instructions."""
    core = hardware.get("trn2")
    begin = perf_counter()
    module = llama(layers)
    program: Program = compile_module(module, core)
    duration_ns = simulate(program, core).duration_ps / 1000
    seconds = perf_counter() - begin
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    print(seconds, gigabytes, bound_ns(module, core) / duration_ns, len(program.instructions))


def _function(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Module:
    return lower_fake(
        lambda: Function(function), lambda: tuple(torch.empty(shape) for shape in shapes), "function"
    )


def _softmax(states: torch.Tensor) -> torch.Tensor:
    return torch.softmax(states, -1)


def _layer_norm(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(states, (states.shape[-1],), weight, bias)


def _column_sums(states: torch.Tensor) -> torch.Tensor:
    return states.sum(0)


def _rotation(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty(length, HEAD_SIZE), torch.empty(length, HEAD_SIZE)

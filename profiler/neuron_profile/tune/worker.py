"""Measures candidates, in a process that may be lost: what it runs was written by a person or a program."""

from __future__ import annotations

import inspect
import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuron_profile.closeness import largest_difference
from neuron_profile.tune.load import load_module
from neuron_profile.tune.measurement import Arrays, Candidate, Measurement, Refusal
from neuron_tools import compat
from neuron_tools.errors import UsageError
from neuron_tools.hardware import NeuronCore, get
from neuron_tools.nki.errors import NkiError
from neuron_tools.nki.kernel import Kernel, jit
from neuron_tools.nki.target import set_core
from neuron_tools.nki.timing import KernelTiming, time_kernel
from neuron_tools.simulator.occupancy import sbuf_occupancy


@dataclass(frozen=True)
class Job:
    """What all candidates of a search have in common.

    Attributes:
        inputs: The kernel's arguments, or the name of a function of the candidate's file that makes them.
        expected: The values to compute: arrays, or the name of a function of the file that gets the inputs;
            None = not compared.
        tolerance: Largest difference, relative to the largest expected value.
        target: Generation to simulate; None = the environment's.
    """

    inputs: tuple[Any, ...] | str
    expected: Arrays | str | None = None
    tolerance: float = 1e-2
    target: str | None = None


_job: list[Job] = []
_made: dict[str, Any] = {}


def prepare(job: Job, memory_bytes: int) -> None:
    """Make this process ready: what candidates print goes nowhere, and they get so much memory."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    compat.install()
    set_core(get(job.target) if job.target else None)
    _job[:] = [job]


def measure(candidate: Candidate, values: bool, keep_outputs: bool) -> Measurement:
    """Time a candidate and, where `values`, compare what it computes."""
    try:
        return _measured(candidate, values, keep_outputs)
    except NkiError as error:
        return Measurement(candidate, refusal=Refusal.RULE, error=str(error))
    except (Exception, SystemExit) as error:  # a candidate may fail in any way
        return Measurement(candidate, refusal=Refusal.FAILED, error=f"{type(error).__name__}: {error}")


def _measured(candidate: Candidate, values: bool, keep_outputs: bool) -> Measurement:
    job = _job[0]
    folder = str(candidate.path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    kernel, keywords = _kernel(candidate)
    timing = time_kernel(kernel, _inputs(job, candidate), keywords, values)
    result = _result(candidate, timing)
    if not values:
        return result
    outputs = tuple(_arrays(timing.outputs))
    kept = outputs if keep_outputs else None
    expected = _expected(job, candidate)
    if expected is None:
        return replace(result, outputs=kept)
    difference = largest_difference(outputs, expected)
    if difference <= job.tolerance:
        return replace(result, outputs=kept, difference=difference)
    error = f"its values differ by {difference:.3g} of the largest; {job.tolerance:g} is allowed"
    return replace(result, outputs=kept, difference=difference, refusal=Refusal.VALUES, error=error)


def _kernel(candidate: Candidate) -> tuple[Kernel, dict[str, Any]]:
    """The kernel, and the parameters that are its own keywords; the others are constants of its file."""
    plain = getattr(load_module(candidate.path), candidate.function, None)
    if plain is None:
        raise UsageError(f"{candidate.path} has no {candidate.function}.")
    signature = inspect.signature(plain.func if isinstance(plain, Kernel) else plain).parameters
    keywords = {name: value for name, value in candidate.parameters.items() if name in signature}
    constants = tuple((name, value) for name, value in candidate.parameters.items() if name not in signature)
    found = getattr(load_module(candidate.path, constants), candidate.function)
    return (found if isinstance(found, Kernel) else jit(found)), keywords


def _inputs(job: Job, candidate: Candidate) -> tuple[Any, ...]:
    if not isinstance(job.inputs, str):
        return job.inputs
    if "inputs" not in _made:
        made = _function(candidate, job.inputs)()
        _made["inputs"] = made if isinstance(made, tuple) else (made,)
    inputs: tuple[Any, ...] = _made["inputs"]
    return inputs


def _expected(job: Job, candidate: Candidate) -> Arrays | None:
    if not isinstance(job.expected, str):
        return job.expected
    if "expected" not in _made:
        _made["expected"] = tuple(_arrays(_function(candidate, job.expected)(*_inputs(job, candidate))))
    expected: Arrays = _made["expected"]
    return expected


def _function(candidate: Candidate, name: str) -> Any:
    found = getattr(load_module(candidate.path), name, None)
    if not callable(found):
        raise UsageError(f"{candidate.path} has no function {name}: the space names it.")
    return found


def _result(candidate: Candidate, timing: KernelTiming) -> Measurement:
    facts = timing.summary()
    counters = {name: float(facts[name]) for name in ("instructions", "dma_transfers")}
    counters |= {f"busy_ns_{engine}": time_ns for engine, time_ns in facts["engine_busy_ns"].items()}
    core = get(timing.kernels[0].program.target)
    return Measurement(candidate, timing.duration_ns, _sbuf_bytes(timing, core), counters)


def _sbuf_bytes(timing: KernelTiming, core: NeuronCore) -> int:
    """Of the core that holds most."""
    shares = [
        float(sbuf_occupancy(lowered.program, simulation, core).used.max(initial=0.0))
        for lowered, simulation in zip(timing.kernels, timing.simulations)
    ]
    return round(max(shares) * core.sbuf_bytes_per_partition)


def _arrays(value: Any) -> Iterator[Any]:
    """The arrays of a result, containers searched in order."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        yield np.asarray(value)
        return
    for each in value:
        yield from _arrays(each)

"""Kernel calls as Programs: run on their own, or spliced into what a framework compiles."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from neuron_tools.compiler.ready_program import ReadyProgram
from neuron_tools.hardware import device_of
from neuron_tools.nki.abstract import Form
from neuron_tools.nki.call import CallForm, KernelCall
from neuron_tools.nki.lowering import lower
from neuron_tools.nki.tracer import Tracer
from neuron_tools.records.kernel_source import KernelProgram
from neuron_tools.simulator.multi_core import simulate_cores


def ready_program(call: KernelCall, forms: tuple[Form, ...]) -> ReadyProgram:
    """The Program of a call for arrays of these forms, as the custom call in a compiled module.

    Operands are the call's arrays; results are what it returns, then the new values of what it writes. A
    launch on two physical cores is represented by the slower of them.

    Raises:
        NkiError: The kernel breaks a rule.
    """
    form = call.form(forms)
    core, program = _slowest(form.run.traces, programs_of(call, form))
    trace, results = form.run.traces[core], form.run.core_results[core]
    rows = tensor_rows(trace)
    given = [rows[buffer.number] for buffer in trace.buffers if not buffer.on_chip and buffer.kind == "input"]
    made = [rows[tensor.backing.number] for tensor in results] + [given[n] for n in form.written]
    return ReadyProgram(
        f"nki_kernel.{call.kernel.name}",
        program_key([program]),
        program,
        tuple((row, number) for number, row in enumerate(given)),
        tuple((row, number) for number, row in enumerate(made)),
    )


def programs_of(call: KernelCall, form: CallForm) -> list[KernelProgram]:
    """The Program of each physical core of a call."""
    return [lower(trace, call.kernel.name).program for trace in form.run.traces]


def _slowest(traces: Sequence[Tracer], programs: Sequence[KernelProgram]) -> tuple[int, KernelProgram]:
    """The core that ends last when all run together, and its Program."""
    if len(programs) == 1:
        return 0, programs[0]
    times = simulate_cores(programs, device_of(traces[0].core))
    last = max(range(len(programs)), key=lambda core: times[core].duration_ps)
    return last, programs[last]


def tensor_rows(trace: Tracer) -> dict[int, int]:
    """Row in the Program's tensors of each buffer in HBM."""
    in_hbm = (buffer.number for buffer in trace.buffers if not buffer.on_chip)
    return {number: row for row, number in enumerate(in_hbm)}


def program_key(programs: Sequence[KernelProgram]) -> str:
    """Equal for Programs with the same tables from the same source."""
    summed = hashlib.sha256()
    for program in programs:
        source = program.source
        for table in (program.instructions, program.waits, program.dmas, program.tiles):
            summed.update(table.tobytes())
        summed.update(
            repr(
                (program.target, program.tensors, program.queues, program.activations, program.collectives)
            ).encode()
        )
        if source is not None:
            summed.update(
                repr((source.names, source.stacks, source.loops, source.calls, source.labels)).encode()
            )
            for column in (source.stack, source.iteration, source.call, source.iterations, source.call_label):
                summed.update(column.tobytes())
    return summed.hexdigest()[:32]

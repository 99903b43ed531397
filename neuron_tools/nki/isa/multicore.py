"""Instructions between the cores of one logical NeuronCore: barriers and exchanges."""

from __future__ import annotations

from typing import Any

from neuron_tools.backend.kinds import Kind, Step, Transfer
from neuron_tools.nki.isa.enums import as_member, dma_engine as dma_engines, engine as engines
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import form_of, issue, ready, refuse
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import NeedsCores
from neuron_tools.nki.values import exact, write
from neuron_tools.records.program import Engine, Memory, Opcode


def core_barrier(
    data: Any = None,
    cores: Any = (0, 1),
    engine: engines = engines.gpsimd,
    name: str | None = None,
) -> NkiInstruction:
    """Wait until all cores of the logical NeuronCore have come here.

    Args:
        data: Tensor in shared HBM that the cores write in parts. A tile in SBUF is
            taken too: AWS's library gives one to keep the loops of two cores in step.
        cores: Cores that take part.
        engine: The engine that waits.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: Other cores are named, or a tile in PSUM.
    """
    trace = ready()
    if tuple(cores) != (0, 1):
        raise refuse(f"core_barrier lets the cores (0, 1) of a logical NeuronCore meet, got {cores}")
    form = form_of(data)
    if form is not None and form.memory is Memory.PSUM:
        raise refuse(
            f"core_barrier keeps data that cores share in HBM, but the tile of shape {form.shape} lies in "
            f"{form.memory.name}; give the tensor in shared HBM (nl.shared_hbm) that they exchange"
        )
    key = (core_barrier, form, engine)
    kind = trace.kinds.get(key)
    if kind is None:
        step = Step(
            as_member(engines, engine).chosen or Engine.GPSIMD,
            Opcode.EVENT_SEMAPHORE,
            waits=(0, 2),
            writes=(0,),
        )
        kind = trace.add_kind(key, Kind("core_barrier", (step,)))
    region = data.region if isinstance(data, NkiTensor) else -1
    trace.record(kind, region, -1, region)
    trace.note_name(name)
    if trace.launch is not None:
        trace.launch.barrier(trace)
    return NkiInstruction(trace)


def sendrecv(
    src: NkiTensor,
    dst: NkiTensor,
    send_to_rank: int,
    recv_from_rank: int,
    pipe_id: int = 0,
    dma_engine: dma_engines = dma_engines.dma,
    name: str | None = None,
) -> NkiInstruction:
    """Send `src` to another core's `dst`, and receive into the own `dst`.

    Args:
        src: Tile in SBUF.
        dst: Tile in SBUF of the same shape and type.
        send_to_rank: Core that receives.
        recv_from_rank: Core that sends.
        pipe_id: Groups exchanges that must finish together.
        dma_engine: Which DMA moves the data.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: Shapes differ, or the kernel runs on one core.
    """
    trace = ready()
    forms = form_of(dst), form_of(src)
    key = (sendrecv, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        if dst.size != src.size or dst.dtype is not src.dtype:
            raise refuse(
                f"sendrecv needs one shape and type, got {src.shape} of {src.dtype} and {dst.shape} of "
                f"{dst.dtype}"
            )
        transfer = Transfer(Memory.SBUF, Memory.SBUF, dst.dtype.chip, src.size * src.dtype.itemsize,
                            min(src.form.run_bytes, dst.form.run_bytes), src.form.partitions,
                            engine=Engine.GPSIMD)  # fmt: skip
        kind = trace.add_kind(key, Kind("sendrecv", transfer=transfer))
    if trace.launch is None and trace.grid == (2,):
        raise NeedsCores
    if trace.launch is None or trace.launch.cores < 2:
        raise refuse("sendrecv works between the two cores of a logical NeuronCore: launch the kernel as "
                     "kernel[2](...)")  # fmt: skip
    values = exact(src).copy() if trace.values else None
    received = trace.launch.exchange(trace, values, int(send_to_rank), int(recv_from_rank), pipe_id)
    issue(trace, kind, dst, src)
    trace.note_name(name)
    if trace.values:
        write(dst, received)
    return NkiInstruction(trace)

"""What the model says for each measurement, or why it says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from benchmarks.fidelity_kernels import layernorm, mamba, matmul, memory, single
from benchmarks.fidelity_kernels.kernel import DTYPES
from benchmarks.fidelity_kernels.measurement import Measurement
from benchmarks.fidelity_kernels.outcome import Outcome, core_of, execute
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Program

INPUT = "the figure is an input of the model"
NOT_BUILT = {
    "mamba_pytorch": "the compiler's program is not published",
    "gemm_compiler": "the compiler's program is not published",
    "gemm_streaming": "the compiler reordered the loops: its transfer counts are less than half the source's",
    "gemm_blocked": "the compiler reordered the loops: its transfer counts are less than half the source's",
    "gemm_narrow_loads": "the compiler reordered the loops; what it loads is not published",
    "transformer_block": "the compiler's program is not published",
    "mixed_load": "several kernels at once, their order unknown",
    "profiled_graph": "the graph is not published",
    "llm_step": "a whole model",
    "rmsnorm_quant": "a design target, not a measurement",
    "host_transfer": "measured through the framework, whose cost is not the link's",
    "dma_rate": "the kernel behind the figure is unknown",
    "trivial_kernel": "the kernel behind the figure is unknown",
    "dma_first_data": INPUT,
    "dma_trigger_instruction": INPUT,
    "synchronous_dispatch": INPUT,
    "ring_hop": INPUT,
    "remote_write": INPUT,
}


@frozen
class Prediction:
    """A measurement with what the model says; `predicted` is NaN and `reason` set where it says nothing.

    `by_busy_model` is what a model without events says of a kernel's time; NaN of anything else.
    """

    measurement: Measurement
    predicted: float
    reason: str = ""
    by_busy_model: float = float("nan")

    @property
    def error(self) -> float:
        """Predicted / measured - 1."""
        measured = self.measurement.value
        return self.predicted / measured - 1.0 if measured else float("nan")

    @property
    def busy_model_error(self) -> float:
        """The same of the model without events."""
        return self.by_busy_model / self.measurement.value - 1.0


def predict(rows: Iterable[Measurement]) -> list[Prediction]:
    """Predictions in the order of the rows; each execution is simulated once."""
    outcomes: dict[tuple[object, ...], Outcome] = {}
    return [_predict(row, outcomes) for row in rows]


def _predict(row: Measurement, outcomes: dict[tuple[object, ...], Outcome]) -> Prediction:
    if reason := _obstacle(row):
        return Prediction(row, float("nan"), reason)
    key = row.execution
    if key not in outcomes:
        programs, work = _build(row)
        outcomes[key] = execute(programs, core_of(row.target), work)
    predicted = _read(row, outcomes[key])
    return Prediction(row, predicted, "", _by_busy_model(row, predicted, outcomes[key]))


def _by_busy_model(row: Measurement, predicted: float, outcome: Outcome) -> float:
    """The same quantity with the body's time of the model without events."""
    other = outcome.busy_model_ns()
    if row.quantity in ("latency", "profile_time"):
        return predicted - outcome.body_ns + other
    return predicted * outcome.body_ns / other if row.quantity == "throughput" else float("nan")


def _obstacle(row: Measurement) -> str:
    """Why a row cannot be predicted; "" if it can."""
    if row.kernel == "dma_packet" and row.size("bytes") == 4:
        return INPUT
    if row.kernel == "gemm_coalesced" and row.size("accumulators") == 4:
        return (
            "the compiler kept part of an operand on chip: its published transfers are 0.73 of the source's"
        )
    return NOT_BUILT.get(row.kernel, "")


def _build(row: Measurement) -> tuple[list[Program], float]:
    """The Programs behind a row, one a core, and the work that their mathematics need."""
    if row.kernel in _MATMULS:
        sizes = row.size("m"), row.size("n"), row.size("k")
        work = 2.0 * sizes[0] * sizes[1] * sizes[2]
        return [_MATMULS[row.kernel](row)] * row.cores, work
    if row.kernel in _MEMORY:
        return [_MEMORY[row.kernel](row)] * row.cores, float(memory.STREAM_BYTES) * (
            2 if row.kernel == "hbm_copy" else 1
        )
    return [_OTHERS[row.kernel](row)], 0.0


def _read(row: Measurement, outcome: Outcome) -> float:
    simulation = outcome.simulations[0]
    if row.kernel in ("instruction", *single.INSTRUCTIONS):
        start, end = simulation.start_ps[-2:], simulation.end_ps[-2:]
        picoseconds = start[1] - start[0] if row.quantity == "interval" else end[0] - start[0]
        return float(picoseconds) / 1000.0
    if row.kernel in ("dma_packet", "dma_engine_share"):
        return outcome.packet_ns() - outcome.core.dma_semaphore_ns
    if row.kernel in ("dma_one_engine", "dma_queue_transfer", "spill_reload"):
        return float(simulation.dma_end_ps[0] - simulation.dma_start_ps[0]) / 1000.0
    if row.kernel == "gemm_half_duty":
        return outcome.quantity(row.quantity) / 2.0
    return outcome.quantity(row.quantity)


def _sized(build: Callable[..., Program]) -> Callable[[Measurement], Program]:
    return lambda row: build(row.target, DTYPES[row.dtype], row.size("m"), row.size("n"), row.size("k"))


def _coalesced(row: Measurement) -> Program:
    sizes = row.size("m"), row.size("n"), row.size("k")
    return matmul.coalesced(row.target, DTYPES[row.dtype], *sizes, row.size("accumulators"))


def _scan(build: Callable[..., Program]) -> Callable[[Measurement], Program]:
    return lambda row: build(row.target, row.size("seq"), row.size("channels"), row.size("state"))


_MATMULS: dict[str, Callable[[Measurement], Program]] = {
    "matmul_tiled": _sized(matmul.tiled),
    "matmul_hoist_load": _sized(matmul.hoist_load),
    "matmul_block_free": _sized(matmul.block_free),
    "matmul_block_all": _sized(matmul.block_all),
    "gemm_two_cores": lambda row: matmul.block_all(
        row.target, DTYPES[row.dtype], row.size("m"), row.size("n"), row.size("k"), cores=2
    ),
    "gemm_coalesced": _coalesced,
    "gemm_half_duty": _coalesced,
}
_MEMORY: dict[str, Callable[[Measurement], Program]] = {
    "hbm_read": lambda row: memory.read(row.target, row.size("row_bytes"), row.size("depth")),
    "hbm_write": lambda row: memory.write(row.target, row.size("row_bytes")),
    "hbm_copy": lambda row: memory.copy(row.target, row.size("row_bytes")),
}
_OTHERS: dict[str, Callable[[Measurement], Program]] = {
    "mamba_v1": _scan(mamba.scan_v1),
    "mamba_v2": _scan(mamba.scan_v2),
    "mamba_v3": _scan(mamba.scan_v3),
    "layernorm_v1": lambda row: layernorm.with_language(row.target, row.size("rows"), row.size("columns")),
    "layernorm_v2": lambda row: layernorm.with_instructions(
        row.target, row.size("rows"), row.size("columns")
    ),
    "instruction": single.instruction,
    **dict.fromkeys(single.INSTRUCTIONS, single.instruction),
    "dma_packet": single.dma,
    "dma_one_engine": single.dma,
    "dma_engine_share": single.dma,
    "dma_queue_transfer": single.dma,
    "spill_reload": single.reload,
}

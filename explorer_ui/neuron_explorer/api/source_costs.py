"""What the lines and functions of a profile's source files cost: device time, work and engines.

A cost is counted twice: as *own*, where the innermost line is meant, so that own costs of all lines add up
to the device time; and as *total*, for every line and function on the stack, each once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from neuron_explorer.api.functions import Function, find_functions
from neuron_profile.analysis.source_frames import SourceFrame, SourceTexts, load_frames, stack
from neuron_profile.analysis.time.stack_charges import StackPair, charge_stacks, stack_pair
from neuron_tools.profile.reader import Profile

_LEAF = "split_part(coalesce({table}.stack_frame_ids, ''), ',', 1)"
_INSTRUCTIONS = f"""
SELECT {_LEAF.format(table="own")} AS own, {_LEAF.format(table="operation")} AS operation,
    coalesce(operation.is_backward, false) AS backward, own.engine AS engine,
    count(*) AS instructions, sum(own.duration_ns) AS engine_ns,
    sum(coalesce(own.hbm_read_bytes, 0) + coalesce(own.hbm_write_bytes, 0)) AS hbm_bytes,
    sum(coalesce(own.adjusted_flops, 0) - coalesce(own.adjusted_flops_transpose, 0)) AS tensor_flops
FROM Instruction own LEFT JOIN FrameworkInstruction operation ON operation.id = own.raw_framework_id
GROUP BY ALL
"""
_OPERATIONS = f"""
SELECT {_LEAF.format(table="operation")} AS operation, coalesce(operation.is_backward, false) AS backward,
    count(DISTINCT operation.id) AS calls, sum(coalesce(hlo.model_flops, 0)) AS model_flops
FROM FrameworkInstruction operation LEFT JOIN HloInstruction hlo ON hlo.raw_framework_id = operation.id
GROUP BY ALL
"""
_PEAK = """
SELECT max(2e9 * tensor_engine_num_rows * tensor_engine_num_cols * tensor_engine_clock_freq) AS flops
FROM Metadata
"""


@dataclass
class Work:
    """Time and work of a line or function; times in ns.

    Attributes:
        calls: Framework operations.
        model_flops: Of the operations, as the model asks for them.
        tensor_flops: Of the Tensor engine's instructions, without transposes.
        engine_ns: Time of its instructions by engine; engines work at once, so they may add up to more.
    """

    device_ns: float = 0.0
    backward_ns: float = 0.0
    calls: int = 0
    instructions: int = 0
    hbm_bytes: int = 0
    model_flops: int = 0
    tensor_flops: int = 0
    engine_ns: dict[str, int] = field(default_factory=dict)

    @property
    def flops(self) -> int:
        """Useful FLOPs: the model's; where it has none, as in kernels, the Tensor engine's."""
        return self.model_flops or self.tensor_flops

    def add(self, other: Work) -> None:
        """Add another's."""
        self.device_ns += other.device_ns
        self.backward_ns += other.backward_ns
        self.calls += other.calls
        self.instructions += other.instructions
        self.hbm_bytes += other.hbm_bytes
        self.model_flops += other.model_flops
        self.tensor_flops += other.tensor_flops
        for engine, time_ns in other.engine_ns.items():
            self.engine_ns[engine] = self.engine_ns.get(engine, 0) + time_ns

    def mfu(self, peak_flops: float) -> float:
        """Useful FLOPs as a part of what the device could have done in its time, 0 to 1."""
        possible = peak_flops * self.device_ns / 1e9
        return min(1.0, self.flops / possible) if possible else 0.0


@dataclass(frozen=True)
class FunctionWork:
    """A function of a source text, as the profile keeps it, and its work."""

    function: Function
    own: Work
    total: Work


@dataclass(frozen=True)
class FileCosts:
    """The costs of one file, lines counted from 1 in the text that was captured."""

    own: Mapping[int, Work]
    total: Mapping[int, Work]
    functions: Sequence[FunctionWork]


@dataclass(frozen=True)
class SourceCosts:
    """The costs of all files of a profile.

    Attributes:
        device_ns: Of the whole profile.
        peak_flops: Of one physical core, per second; 0 where the profile does not say.
    """

    device_ns: float
    peak_flops: float
    files: Mapping[str, FileCosts]


def read_source_costs(profile: Profile) -> SourceCosts:
    """Compute the costs of all source lines. O(n log n) in instructions and transfers."""
    frames, works = load_frames(profile), _works(profile)
    stacks = [(_frames(frames, pair), work) for pair, work in works.items()]
    texts = SourceTexts(profile)
    files = sorted({frame.file for chain, _ in stacks for frame in chain})
    peak = profile.query(_PEAK).column(0)[0].as_py() or 0.0
    device_ns = sum(work.device_ns for work in works.values())
    return SourceCosts(device_ns, peak, {file: _file_costs(file, stacks, texts) for file in files})


def _works(profile: Profile) -> Mapping[StackPair, Work]:
    works: dict[StackPair, Work] = defaultdict(Work)
    for pair, device_ns in charge_stacks(profile).items():
        works[pair].device_ns += device_ns
        works[pair].backward_ns += device_ns if pair.backward else 0.0
    for row in profile.query(_INSTRUCTIONS).to_pylist():
        engines = {row["engine"]: int(row["engine_ns"])} if row["engine"] else {}
        works[stack_pair(row["own"], row["operation"], row["backward"])].add(
            Work(
                instructions=row["instructions"], hbm_bytes=int(row["hbm_bytes"]),
                tensor_flops=int(row["tensor_flops"]), engine_ns=engines,
            )
        )  # fmt: skip
    for row in profile.query(_OPERATIONS).to_pylist():
        pair = stack_pair(None, row["operation"], row["backward"])
        works[pair].add(Work(calls=row["calls"], model_flops=int(row["model_flops"])))
    return works


def _frames(frames: Mapping[str, SourceFrame], pair: StackPair) -> list[SourceFrame]:
    """The stack of a pair, innermost first: that of the kernel's instruction, then that of its call."""
    own, calling = stack(frames, pair.own), stack(frames, pair.operation)
    if not own or not calling or own[-1] == calling[-1]:
        return own or calling
    return own + calling


Stacks = Iterable[tuple[Sequence[SourceFrame], Work]]


def _file_costs(file: str, stacks: Stacks, texts: SourceTexts) -> FileCosts:
    own: dict[int, Work] = defaultdict(Work)
    total: dict[int, Work] = defaultdict(Work)
    for chain, work in stacks:
        if chain and chain[0].file == file:
            own[chain[0].line].add(work)
        for line in {frame.line for frame in chain if frame.file == file}:
            total[line].add(work)
    functions = find_functions("\n".join(texts.lines(file)))
    return FileCosts(own, total, _function_works(file, functions, stacks))


def _function_works(file: str, functions: Sequence[Function], stacks: Stacks) -> list[FunctionWork]:
    innermost = _innermost(functions)
    works = {function: FunctionWork(function, Work(), Work()) for function in functions}
    for chain, work in stacks:
        inside = [innermost.get(frame.line) if frame.file == file else None for frame in chain]
        if inside and inside[0] is not None:
            works[inside[0]].own.add(work)
        for function in {function for function in inside if function is not None}:
            works[function].total.add(work)
    return [work for work in works.values() if work.total.device_ns or work.total.instructions]


def _innermost(functions: Sequence[Function]) -> dict[int, Function]:
    """The function that each line belongs to; inner ones come after those around them."""
    return {line: function for function in functions for line in range(function.first, function.last + 1)}

"""What the lines and functions of a profile's source files cost: device time, work and engines.

A cost is counted three times: as *own*, at the innermost line of all, so that own costs of all lines add up
to the device time; as *own code*, at the innermost line of the user's own code, which adds up too; and as
*total*, for every line and function on the stack, each once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from neuron_explorer.api.functions import Function, find_functions
from neuron_explorer.cost import Cost
from neuron_profile.analysis.own_lines import OwnLine, load_own_lines
from neuron_profile.analysis.source_frames import SourceFrame, SourceLine, SourceTexts, load_frames, stack
from neuron_profile.analysis.time.logical_cores import of_first_cores, physical_cores
from neuron_profile.analysis.time.stack_charges import StackPair, charge_stacks, stack_pair
from neuron_tools.frozen import frozen
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
    count(DISTINCT operation.id) FILTER ({{chosen}}) AS calls,
    sum(coalesce(hlo.model_flops, 0)) AS model_flops
FROM FrameworkInstruction operation LEFT JOIN HloInstruction hlo ON hlo.raw_framework_id = operation.id
GROUP BY ALL
"""
_PEAK = """
SELECT max(2e9 * tensor_engine_num_rows * tensor_engine_num_cols * tensor_engine_clock_freq) AS flops
FROM Metadata
"""


@dataclass
class Work(Cost):
    """Time and work of a line or function; times in ns.

    Attributes:
        calls: Framework operations.
        model_flops: Of the operations, as the model asks for them.
        tensor_flops: Of the Tensor engine's instructions, without transposes.
        engine_ns: Time of its instructions by engine, the mean of a logical core's physical ones. Engines
            work at once, so they may add up to more.
    """

    calls: int = 0
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

    def scaled(self, times: int) -> Work:
        """So many times the work."""
        numbers = {name: getattr(self, name) * times for name in _NUMBERS}
        return Work(**numbers, engine_ns={engine: ns * times for engine, ns in self.engine_ns.items()})

    def mfu(self, peak_flops: float) -> float:
        """Useful FLOPs as a part of what the device could have done in its time, 0 to 1."""
        possible = peak_flops * self.device_ns / 1e9
        return min(1.0, self.flops / possible) if possible else 0.0


_NUMBERS = tuple(each.name for each in fields(Work) if each.name != "engine_ns")


@dataclass(frozen=True)
class FunctionWork:
    """A function of a source text, as the profile keeps it, and its work."""

    function: Function
    own: Work
    own_code: Work
    total: Work


@dataclass(frozen=True)
class FileCosts:
    """The costs of one file, lines counted from 1 in the text that was captured."""

    own: Mapping[int, Work]
    own_code: Mapping[int, Work]
    total: Mapping[int, Work]
    functions: Sequence[FunctionWork]


@dataclass(frozen=True)
class SourceCosts:
    """The costs of all files of a profile.

    Attributes:
        device_ns: Of the whole profile.
        peak_flops: Of a logical core, per second; 0 where the profile does not say.
    """

    device_ns: float
    peak_flops: float
    files: Mapping[str, FileCosts]


def read_source_costs(profile: Profile) -> SourceCosts:
    """Compute the costs of all source lines. O(n log n) in instructions and transfers."""
    frames, works, own = load_frames(profile), _works(profile), load_own_lines(profile)
    stacks = [_Stack(_frames(frames, pair), _own_line(pair, own), work) for pair, work in works.items()]
    texts = SourceTexts(profile)
    files = sorted({frame.file for each in stacks for frame in each.chain})
    peak = profile.query(_PEAK).column(0)[0].as_py() or 0.0
    device_ns = sum(work.device_ns for work in works.values())
    peak *= physical_cores(profile)
    return SourceCosts(device_ns, peak, {file: _file_costs(file, stacks, texts) for file in files})


def _works(profile: Profile) -> Mapping[StackPair, Work]:
    works: dict[StackPair, Work] = defaultdict(Work)
    physical = physical_cores(profile)
    for pair, device_ns in charge_stacks(profile).items():
        works[pair].device_ns += device_ns
        works[pair].backward_ns += device_ns if pair.backward else 0.0
    for row in profile.query(_INSTRUCTIONS).to_pylist():
        engines = {row["engine"]: int(row["engine_ns"]) // physical} if row["engine"] else {}
        works[stack_pair(row["own"], row["operation"], row["backward"])].add(
            Work(
                instructions=row["instructions"], hbm_bytes=int(row["hbm_bytes"]),
                tensor_flops=int(row["tensor_flops"]), engine_ns=engines,
            )
        )  # fmt: skip
    operations = _OPERATIONS.format(chosen=of_first_cores(profile, "operation.pcore_idx"))
    for row in profile.query(operations).to_pylist():
        pair = stack_pair(None, row["operation"], row["backward"])
        works[pair].add(Work(calls=row["calls"], model_flops=int(row["model_flops"])))
    return works


@frozen
class _Stack:
    """A stack, innermost frame first; the user's line on it; the work that belongs to it."""

    chain: Sequence[SourceFrame]
    own_line: SourceLine | None
    work: Work


def _own_line(pair: StackPair, own: Mapping[str, OwnLine]) -> SourceLine | None:
    """The user's line: that of the kernel's instruction, else that of its call, else the exact one."""
    found = [own[leaf] for leaf in (pair.own, pair.operation) if leaf in own]
    chosen = next((line for line in found if line.is_own), found[0] if found else None)
    return chosen.place if chosen else None


def _frames(frames: Mapping[str, SourceFrame], pair: StackPair) -> list[SourceFrame]:
    """The stack of a pair, innermost first: that of the kernel's instruction, then that of its call."""
    own, calling = stack(frames, pair.own), stack(frames, pair.operation)
    if not own or not calling or own[-1] == calling[-1]:
        return own or calling
    return own + calling


def _file_costs(file: str, stacks: Sequence[_Stack], texts: SourceTexts) -> FileCosts:
    own: dict[int, Work] = defaultdict(Work)
    own_code: dict[int, Work] = defaultdict(Work)
    total: dict[int, Work] = defaultdict(Work)
    here = [each for each in stacks if any(frame.file == file for frame in each.chain)]
    for each in here:
        if each.chain[0].file == file:
            own[each.chain[0].line].add(each.work)
        if each.own_line is not None and each.own_line.file == file:
            own_code[each.own_line.line].add(each.work)
        for line in {frame.line for frame in each.chain if frame.file == file}:
            total[line].add(each.work)
    functions = find_functions("\n".join(texts.lines(file)))
    return FileCosts(own, own_code, total, _function_works(file, functions, here))


def _function_works(file: str, functions: Sequence[Function], stacks: Iterable[_Stack]) -> list[FunctionWork]:
    innermost = _innermost(functions)
    works = {function: FunctionWork(function, Work(), Work(), Work()) for function in functions}
    for each in stacks:
        inside = [innermost.get(frame.line) if frame.file == file else None for frame in each.chain]
        if inside[0] is not None:
            works[inside[0]].own.add(each.work)
        line = each.own_line
        if line is not None and line.file == file and line.line in innermost:
            works[innermost[line.line]].own_code.add(each.work)
        for function in {function for function in inside if function is not None}:
            works[function].total.add(each.work)
    return [work for work in works.values() if work.total.device_ns or work.total.instructions]


def _innermost(functions: Sequence[Function]) -> dict[int, Function]:
    """The function that each line belongs to; inner ones come after those around them."""
    return {line: function for function in functions for line in range(function.first, function.last + 1)}

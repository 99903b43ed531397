"""Choice of engine for instructions that several engines can do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from neuron_tools.compiler.codegen.micro import Key, Micro
from neuron_tools.compiler.passes.groups import Shape
from neuron_tools.frozen import frozen
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.records.program import INSTRUCTION_DTYPE, DType, Engine, Memory, Opcode, empty_table
from neuron_tools.simulator.instruction_costs import instruction_costs, shared_ports

SEARCHED_CHOICES = 600
"""Assignments tried one by one when the quick choice does not keep within the budget."""
SEARCH_STARTS = 16
"""The best assignments of whole instructions, from each of which single tiles' instructions are moved."""
EVENNESS = 8
LEAST_GAIN = 0.01
"""A move must even out the loads by at least this much."""
AS_ACTIVATION = (Opcode.TENSOR_SCALAR, Opcode.TENSOR_REDUCE, Opcode.TENSOR_COPY, Opcode.TENSOR_TENSOR)
"""What the Scalar engine does as an activation: of two tensors only a tensor with itself."""
_SCALAR_STATISTICS_PASSES = 2
"""The Scalar engine has no BN_STATS: it takes the sum in one ACTIVATE and the sum of squares in another."""


@lru_cache(maxsize=4096)
def instruction_ns(
    core: NeuronCore,
    engine: Engine,
    opcode: Opcode,
    elements: int,
    dtype: DType = DType.F32,
    source: Memory = Memory.SBUF,
    columns: int = 0,
) -> float:
    """Issue interval of an instruction that writes SBUF, as the simulator will count it."""
    if engine is Engine.SCALAR and opcode is Opcode.BN_STATS:
        return _SCALAR_STATISTICS_PASSES * instruction_ns(core, engine, Opcode.ACTIVATE, elements, dtype)
    if engine is Engine.SCALAR and opcode is Opcode.TENSOR_TENSOR:
        opcode = Opcode.ACTIVATE
    row = _row(engine, opcode, elements, dtype, source)
    row["partitions"], row["columns"] = core.sbuf_partitions, columns
    interval_ps, _ = instruction_costs(row, core)
    return float(interval_ps[0]) / 1e3


def _row(engine: Engine, opcode: Opcode, elements: int, dtype: DType, source: Memory) -> npt.NDArray[np.void]:
    row = empty_table(INSTRUCTION_DTYPE, 1)
    row["engine"], row["opcode"], row["elements"] = engine, opcode, elements
    row["input_dtype"] = row["output_dtype"] = dtype
    row["source_memory"], row["destination_memory"] = source, Memory.SBUF
    return row


def joins_scalar(core: NeuronCore, elements: int, dtype: DType) -> bool:
    """Whether one SCALAR_TENSOR_TENSOR beats a TENSOR_SCALAR and a TENSOR_TENSOR of the same elements."""
    parts = (Opcode.TENSOR_SCALAR, Opcode.TENSOR_TENSOR)
    apart = sum(instruction_ns(core, Engine.VECTOR, opcode, elements, dtype) for opcode in parts)
    return instruction_ns(core, Engine.VECTOR, Opcode.SCALAR_TENSOR_TENSOR, elements, dtype) <= apart


def composes_scalars(core: NeuronCore, elements: int) -> bool:
    """Whether one scale and shift less on so many elements outweighs computing it for each row."""
    whole, row = (instruction_ns(core, Engine.VECTOR, Opcode.TENSOR_SCALAR, count) for count in (elements, 1))
    return whole > _COMPOSING_INSTRUCTIONS * row


_COMPOSING_INSTRUCTIONS = 4
"""On rows' numbers, at most, where two instructions with two scales or shifts each become one."""

_Resource = tuple[int, str]
"""A pass over a tile's columns, and what is used in it: an engine, or the port that engines share."""
_Load = Mapping[_Resource, float]
"""Time that an instruction takes of each resource, ns."""
_PORT = "sbuf port"
_SHARING = (Engine.VECTOR, Engine.GPSIMD)


@frozen
class TileCosts:
    """What the instructions of a tile body cost.

    Attributes:
        elements, rows: Of a partition. Each row costs an instruction where their numbers are scalars.
        dtype_of: The element type that decides how quick an instruction is.
    """

    core: NeuronCore
    elements: int
    dtype_of: Callable[[Micro], DType] = lambda micro: DType.F32
    rows: int = 1

    def repeats(self, micro: Micro, engine: Engine) -> int:
        """Instructions that do the work of one, where a partition has several rows whose numbers are scalars.

        Only the Vector engine's reduction tells rows apart by itself: what an activation adds up is one
        number.
        """
        sums = engine is Engine.SCALAR and micro.opcode in (Opcode.TENSOR_REDUCE, Opcode.BN_STATS)
        return self.rows if micro.by_row or (sums and micro.shape is Shape.FULL) else 1

    def of(self, micro: Micro, engine: Engine) -> float:
        """Time that an instruction, with its repeats, takes of an engine, ns."""
        count = self.repeats(micro, engine)
        elements = self.rows if micro.shape is Shape.ROW else -(-self.elements // count)
        return count * instruction_ns(self.core, engine, micro.opcode, elements, self.dtype_of(micro))

    def loads(
        self, micros: Sequence[Micro], levels_of: Callable[[Micro], Iterable[int]] = lambda micro: (0,)
    ) -> list[Mapping[Engine, _Load]]:
        """What each instruction takes on each engine it may run on; tiny ones stay on the first.

        Where the Vector engine needs the shared port for some of its instructions, GpSimd is taken to wait
        for the others too: both issue in order.
        """
        holds = any(
            Engine.VECTOR in micro.engines
            and needs_port(self.core, Engine.VECTOR, micro.opcode, self.dtype_of(micro))
            for micro in micros
            if micro.shape is not Shape.ROW
        )
        sharing = _SHARING if holds else (Engine.GPSIMD,)
        return [self._loads_of(micro, levels_of(micro), sharing) for micro in micros]

    def _loads_of(
        self, micro: Micro, levels: Iterable[int], sharing: Collection[Engine]
    ) -> Mapping[Engine, _Load]:
        is_tiny = micro.shape is Shape.ROW
        loads: dict[Engine, _Load] = {}
        for engine in micro.engines[:1] if is_tiny else micro.engines:
            time = self.of(micro, engine)
            used = (engine.name, _PORT) if engine in sharing and not is_tiny else (engine.name,)
            loads[engine] = {(level, name): time for level in levels for name in used}
        return loads


def assign_engines(
    micros: Sequence[Micro], costs: TileCosts, budgets_ns: Sequence[float], *, phases: int = 1,
    levels_of: Callable[[Micro], Iterable[int]] = lambda micro: (0,),
) -> tuple[tuple[Engine, ...], ...]:  # fmt: skip
    """Engine of each instruction of a tile body, for each of `phases` tiles that follow one another.

    The first engine that still has room within the budget (the time in which a tile's bytes move) takes an
    instruction; when none has, the one that would be done first. Where the busiest resource then exceeds the
    budget, instructions move from it as long as that helps, and tiles in turn may use different engines.
    Passes over the columns come one after the other, so each has a budget, and loads, of its own.
    """
    loads = costs.loads(micros, levels_of)
    chosen = _greedy(loads, budgets_ns)
    if _time(loads, chosen, budgets_ns)[0] <= sum(budgets_ns):
        return tuple((engine,) * phases for engine in chosen)
    starts = [chosen]
    if math.prod(map(len, loads)) <= SEARCHED_CHOICES:
        starts = sorted(product(*loads), key=lambda engines: _time(loads, engines, budgets_ns))[
            :SEARCH_STARTS
        ]
    if phases == 1:
        return tuple((engine,) for engine in starts[0])
    wide = [load for load in loads for _ in range(phases)]
    whole = [phases * budget for budget in budgets_ns]
    spread = min(
        (_balanced(wide, [engine for engine in start for _ in range(phases)]) for start in starts),
        key=lambda engines: _time(wide, engines, whole),
    )
    return tuple(_in_turn(spread[index * phases : (index + 1) * phases]) for index in range(len(loads)))


def _in_turn(engines: Sequence[Engine]) -> tuple[Engine, ...]:
    """The same engines, the tiles of each spread evenly.

    Example:
        >>> [engine.name[0] for engine in _in_turn([Engine.SCALAR] * 3 + [Engine.VECTOR] * 3)]
        ['S', 'V', 'S', 'V', 'S', 'V']
    """
    seen: Counter[Engine] = Counter()
    places = []
    for engine in engines:
        places.append((2 * seen[engine] + 1) / engines.count(engine))
        seen[engine] += 1
    return tuple(engine for _, engine in sorted(zip(places, engines), key=lambda item: item[0]))


def quickest_engines(
    micros: Sequence[Micro], costs: TileCosts, tiles: int = 1
) -> tuple[tuple[Engine, ...], ...]:
    """The engine that is done first with each instruction, for each of a few tiles one after the other."""
    free: dict[Engine, float] = {}
    chosen = [_soonest(micros, costs, free) for _ in range(tiles)]
    return tuple(zip(*chosen)) if micros else ()


def _soonest(micros: Sequence[Micro], costs: TileCosts, free: dict[Engine, float]) -> list[Engine]:
    """Engines of one tile's instructions; `free` is when each engine has done what it was given before."""
    made: dict[Key, float] = {}
    found = []
    for micro in micros:
        ready = max((made.get(key, 0.0) for key in micro.reads), default=0.0)
        ends = {
            engine: max(ready, free.get(engine, 0.0)) + costs.of(micro, engine) for engine in micro.engines
        }
        engine = min(micro.engines, key=lambda engine: ends[engine])
        free[engine] = ends[engine]
        made.update((key, ends[engine]) for key in (micro.writes, micro.reduces) if key is not None)
        found.append(engine)
    return found


def busiest_ns(
    micros: Sequence[Micro], engines: Sequence[Sequence[Engine]], costs: TileCosts,
    added: Mapping[Engine, float] | None = None,
) -> float:  # fmt: skip
    """Time that a tile takes of the engine or port that is busiest over all phases.

    `added` is other work of the engines, ns.
    """
    load = {engine.name: time for engine, time in (added or {}).items()}
    for loads, chosen in zip(costs.loads(micros), engines):
        for engine in chosen:
            taken = loads.get(engine) or next(iter(loads.values()))
            for (_, name), time in taken.items():
                load[name] = load.get(name, 0.0) + time / len(chosen)
    return max(load.values(), default=0.0)


def chain_ns(micros: Sequence[Micro], engines: Sequence[Sequence[Engine]], costs: TileCosts) -> float:
    """Time of a tile's instructions one after the other."""
    return sum(costs.of(micro, chosen[0]) for micro, chosen in zip(micros, engines))


def _balanced(costs: Sequence[Mapping[Engine, _Load]], engines: list[Engine]) -> list[Engine]:
    """Move single instructions to other engines while that evens out the loads (sum of high powers)."""
    load = _total(costs, engines)
    while True:
        best, move = _unevenness(load) * (1 - LEAST_GAIN), None
        for index, (cost, engine) in enumerate(zip(costs, engines)):
            for other in cost:
                if other is engine:
                    continue
                unevenness = _unevenness(_moved(load, cost[engine], cost[other]))
                if unevenness < best:
                    best, move = unevenness, (index, other)
        if move is None:
            return engines
        index, other = move
        load = _moved(load, costs[index][engines[index]], costs[index][other])
        engines[index] = other


def _total(costs: Sequence[Mapping[Engine, _Load]], engines: Sequence[Engine]) -> dict[_Resource, float]:
    load: dict[_Resource, float] = {}
    for cost, engine in zip(costs, engines):
        for resource, time in cost[engine].items():
            load[resource] = load.get(resource, 0.0) + time
    return load


def _moved(load: _Load, taken: _Load, added: _Load) -> dict[_Resource, float]:
    moved = dict(load)
    for resource, time in taken.items():
        moved[resource] -= time
    for resource, time in added.items():
        moved[resource] = moved.get(resource, 0.0) + time
    return moved


def _unevenness(load: _Load) -> float:
    return sum(busy**EVENNESS for busy in load.values())


@lru_cache(maxsize=1024)
def needs_port(core: NeuronCore, engine: Engine, opcode: Opcode, dtype: DType) -> bool:
    """Whether an instruction on SBUF must have the port that Vector and GpSimd share."""
    rows = np.concatenate([_row(engine, opcode, 1, dtype, Memory.SBUF) for engine in (engine, *_SHARING)])
    return bool(shared_ports(rows, core)[0])


def _greedy(costs: Sequence[Mapping[Engine, _Load]], budgets_ns: Sequence[float]) -> tuple[Engine, ...]:
    load: dict[_Resource, float] = {}
    chosen: list[Engine] = []
    for cost in costs:
        loads = {engine: _moved(load, {}, taken) for engine, taken in cost.items()}
        roomy = [
            engine
            for engine, taken in cost.items()
            if all(loads[engine][item] <= budgets_ns[item[0]] for item in taken)
        ]
        engine = roomy[0] if roomy else min(cost, key=lambda e: max(loads[e][item] for item in cost[e]))
        load = loads[engine]
        chosen.append(engine)
    return tuple(chosen)


def _time(
    costs: Sequence[Mapping[Engine, _Load]], engines: Sequence[Engine], budgets_ns: Sequence[float]
) -> tuple[float, float]:
    """Time that all passes take, ns, with what they move and without."""
    busiest = [0.0] * len(budgets_ns)
    for (level, _), load in _total(costs, engines).items():
        busiest[level] = max(busiest[level], load)
    return sum(map(max, busiest, budgets_ns)), sum(busiest)

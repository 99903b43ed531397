"""The instruction table: one frozen record per instruction, from which its checks, rows and reference come.

A record names the engines that run the instruction, its operands and the rules that they keep, and the opcode
under which the simulator finds its cost. `prologue.instruction` makes the function that kernels call from a
record and a function that computes values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from neuron_tools.backend.kinds import READS, Kind, Step
from neuron_tools.frozen import frozen
from neuron_tools.nki.isa.enums import as_member, dge_mode, engine as engines, matmul_perf_mode, oob_mode
from neuron_tools.nki.isa.issue import (
    compute_step,
    refuse,
    require_column,
    require_integers,
    require_memory,
    require_on_chip,
    require_reach,
    require_same_size,
    require_start_partition,
    require_types,
)
from neuron_tools.nki.operators import find_operator
from neuron_tools.nki.tracer import Tracer
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Memory, Opcode

ON_CHIP = (Memory.SBUF, Memory.PSUM)
SBUF = (Memory.SBUF,)
PSUM = (Memory.PSUM,)
BY_DMA = (Memory.HBM, Memory.SBUF)
_CHOICES: dict[str, type[Enum]] = {
    "engine": engines,
    "perf_mode": matmul_perf_mode,
    "dge_mode": dge_mode,
    "oob_mode": oob_mode,
}
"""Arguments that choose a member of an enumeration, which kernels may also give by its name or number."""
TABLE: dict[str, Instruction] = {}
"""Every instruction that has a record, by its name."""


@frozen
class Operand:
    """A tensor that an instruction reads or writes, and the rules that it keeps.

    Attributes:
        name: Its argument.
        memories: Where it may lie.
        written: Whether the instruction writes it; at most two are.
        optional: Whether None, a number or a register does as well.
        streamed: Whether the engine reads it element by element along with the result, so that it counts in
            the cost; parameters are not.
        column: The operand as many partitions of which it has, one element each; "": no such rule.
        aligned: Whether it starts at a partition where engines can start.
        gathered: Whether it may be indexed indirectly.
        types: Element types that it may have in the present dialect; () for all.
    """

    name: str
    memories: tuple[Memory, ...] = ON_CHIP
    written: bool = False
    optional: bool = False
    streamed: bool = True
    column: str = ""
    aligned: bool = False
    gathered: bool = False
    types: tuple[str, ...] = ()


@frozen
class Derived:
    """An argument that is worked out from the others before the kind of the call is looked up.

    Attributes:
        name: The argument, replaced by what `function` returns; or a new name, for `key`.
        sources: Arguments that the function takes.
        function: Works it out.
        only_none: Whether that happens only where the argument is None.
    """

    name: str
    sources: tuple[str, ...]
    function: Callable[..., Any]
    only_none: bool = False


@frozen
class Instruction:
    """One instruction of the NeuronCore.

    Attributes:
        name: As kernels call it, and as profiles show it.
        opcode: Its row in the cost tables; None for a DMA.
        engines: Engines that run it, the one that is taken where the kernel names none first.
        operands: What it writes, then what it reads, in the order of their slots in the trace.
        same_size: Pairs of operands of the same partitions and elements per partition.
        same_type: Pairs of operands of one element type, in the present dialect.
        apart: Two operands that cannot both lie in PSUM, or none.
        operator: Argument whose operator, where it works on bit patterns, asks for integers; "": none.
        key: Other arguments on which the rows depend.
        derived: Arguments that are worked out first.
        since: First generation of the NeuronCore that has it.
        older_in_psum: Whether kernels of the older dialect may reach PSUM where SBUF is asked for.
        rule: What else must hold.
        select: The engine, where it depends on the operands.
        build: The kind of a call; default one step of the engine.
    """

    name: str
    opcode: Opcode | None
    engines: tuple[Engine, ...]
    operands: tuple[Operand, ...]
    same_size: tuple[tuple[str, str], ...] = ()
    same_type: tuple[tuple[str, str], ...] = ()
    apart: tuple[str, str] | tuple[()] = ()
    operator: str = ""
    key: tuple[str, ...] = ()
    derived: tuple[Derived, ...] = ()
    since: int = 2
    older_in_psum: bool = False
    rule: Callable[[Call], None] | None = None
    select: Callable[[Call], Engine] | None = None
    build: Callable[[Call], Kind] | None = None

    def kind(self, trace: Tracer, forms: Mapping[str, ViewForm | None], given: Mapping[str, Any]) -> Kind:
        """The kind of a call with operands of these forms.

        Args:
            trace: The running trace.
            forms: Form of each operand; None where it is no tensor.
            given: The arguments of `key`.

        Raises:
            NkiValidationError: A rule is broken.
        """
        chosen = {name: as_member(_CHOICES[name], value) if name in _CHOICES else value
                  for name, value in given.items()}  # fmt: skip
        call = Call(self, trace, forms, chosen)
        call.check()
        return call.kind() if self.build is None else self.build(call)


@frozen
class Call:
    """A call whose kind is made: the record, the forms of the operands, the arguments that matter."""

    record: Instruction
    trace: Tracer
    forms: Mapping[str, ViewForm | None]
    given: Mapping[str, Any]

    def form(self, name: str) -> ViewForm:
        """The form of an operand that is a tensor."""
        form = self.forms[name]
        assert form is not None
        return form

    @property
    def engine(self) -> Engine:
        """The engine that runs the call.

        Raises:
            NkiValidationError: The kernel asks for one that cannot.
        """
        record = self.record
        asked = self.given.get("engine", engines.unknown).chosen
        if asked is not None and asked not in record.engines:
            raise refuse(f"{record.name} runs on {listed(record.engines)}, not on {asked.title}")
        return record.select(self) if record.select is not None else asked or record.engines[0]

    def kind(self, **options: Any) -> Kind:
        """One step of the engine; `options` as of `compute_step`, and those of Kind that are named here."""
        own = {name: options.pop(name) for name in ("engines", "constant", "straight") if name in options}
        target = self.forms[self.record.operands[0].name]
        whole = target is not None and target.dense
        return Kind(self.record.name, (self.step(**options),), whole=whole, **own)

    def step(self, **options: Any) -> Step:
        """The row of the call."""
        record = self.record
        assert record.opcode is not None
        read = [operand for operand in record.operands
                if not operand.written and self.forms[operand.name] is not None]  # fmt: skip
        streamed = [self.form(operand.name) for operand in read if operand.streamed]
        step = compute_step(
            self.engine, record.opcode, self.form(record.operands[0].name), *streamed[:2], **options
        )
        parameters = tuple(slot for slot, operand in enumerate(read, READS) if not operand.streamed)
        return replace(step, parameters=parameters)

    # Rules

    def check(self) -> None:
        """Hold the call to the rules of its record.

        Raises:
            NkiValidationError: Names the rule and the operand.
        """
        record = self.record
        if self.trace.core.generation < record.since:
            raise refuse(
                f"{record.name} needs NeuronCore-v{record.since} or newer, the target is "
                f"{self.trace.core.name}"
            )
        for operand in record.operands:
            self._check_place(operand)
        for first, second in record.same_size:
            if self.forms[first] is not None and self.forms[second] is not None:
                require_same_size(record.name, self.form(first), self.form(second), f"{first} and {second}")
        for operand in record.operands:
            self._check_shape(operand)
        if not self.trace.older_dialect:
            self._check_types()
        self._check_apart()
        if record.operator:
            forms = [self.form(operand.name) for operand in record.operands if not operand.optional]
            require_integers(record.name, find_operator(self.given[record.operator]), *forms)
        if record.rule is not None:
            record.rule(self)
        if len(record.engines) > 1:
            require_reach(record.name, self.engine, *self.forms.values())

    def _check_place(self, operand: Operand) -> None:
        name, form = self.record.name, self.forms[operand.name]
        if form is None or form.memory in operand.memories:
            return
        if form.memory is Memory.PSUM and self.record.older_in_psum and self.trace.older_dialect:
            return
        if operand.memories == ON_CHIP:
            require_on_chip(name, **{operand.name: form})
        if operand.memories == BY_DMA:
            raise refuse(
                f"{name} moves data between HBM and SBUF, but {operand.name} lies in PSUM; copy it with "
                "nisa.tensor_copy first"
            )
        require_memory(name, operand.memories[0], **{operand.name: form})

    def _check_shape(self, operand: Operand) -> None:
        form = self.forms[operand.name]
        if operand.aligned:
            require_start_partition(self.record.name, **{operand.name: form})
        if operand.column:
            require_column(self.record.name, operand.name, form, self.form(operand.column).partitions)

    def _check_types(self) -> None:
        name, forms = self.record.name, self.forms
        for operand in self.record.operands:
            if operand.types:
                require_types(name, operand.types, **{operand.name: forms[operand.name]})
        for first, second in self.record.same_type:
            one, other = forms[first], forms[second]
            if one is not None and other is not None and one.dtype is not other.dtype:
                raise refuse(
                    f"{name} converts no elements: {first} is {one.dtype}, but {second} {other.dtype}; give "
                    "both one type, and convert with nisa.tensor_copy"
                )

    def _check_apart(self) -> None:
        names = self.record.apart
        apart = [self.forms[name] for name in names]
        if apart and all(form is not None and form.memory is Memory.PSUM for form in apart):
            raise refuse(
                f"{self.record.name} cannot read both operands from PSUM ({' and '.join(names)}); copy one "
                "to SBUF first (nisa.tensor_copy)"
            )


def listed(choices: tuple[Engine, ...]) -> str:
    """Engines in words: "Vector, Scalar or GpSimd"."""
    *others, last = [engine.title for engine in choices]
    return f"{', '.join(others)} or {last}" if others else last

"""`torch_neuronx.pyhlo.hlo_pb2`: a traced model as libraries see it: its parameters, and its bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from neuron_tools.compat.absent import names_of
from neuron_tools.frontends.torch_trace.graph_files import graph_bytes, trace_of
from neuron_tools.frontends.torch_trace.ranked_program import RankedTrace

__all__ = ["FrontendAttributes", "HloComputationProto", "HloInstructionProto", "HloModuleProto"]


@dataclass
class FrontendAttributes:
    """What libraries note about a module or an operation.

    Attributes:
        map: Name -> value.
    """

    map: dict[str, str] = field(default_factory=dict)


@dataclass
class HloInstructionProto:
    """An operation.

    Attributes:
        id: Its number in the module.
        name: Its name.
        opcode: What it does.
        parameter_number: Which parameter it is.
        operand_ids: Numbers of its operands.
        called_computation_ids: Numbers of the computations that it calls.
        frontend_attributes: What libraries note about it.
    """

    id: int = 0
    name: str = ""
    opcode: str = ""
    parameter_number: int = 0
    operand_ids: list[int] = field(default_factory=list)
    called_computation_ids: list[int] = field(default_factory=list)
    frontend_attributes: FrontendAttributes = field(default_factory=FrontendAttributes)


@dataclass
class HloComputationProto:
    """A computation; only its parameters are listed.

    Attributes:
        id: Its number in the module.
        root_id: Number of its result.
        name: Its name.
        instructions: Its parameters.
    """

    id: int = 0
    root_id: int = 0
    name: str = ""
    instructions: list[HloInstructionProto] = field(default_factory=list)


@dataclass
class HloModuleProto:
    """A traced model.

    Attributes:
        name: Its name.
        computations: The entry computation.
        entry_computation_id: Its number.
        frontend_attributes: What libraries note about it.
    """

    name: str = ""
    computations: list[HloComputationProto] = field(default_factory=list)
    entry_computation_id: int = 0
    frontend_attributes: FrontendAttributes = field(default_factory=FrontendAttributes)
    _data: bytes = b""

    @classmethod
    def of(cls, trace: RankedTrace) -> HloModuleProto:
        """That of a trace."""
        module = cls()
        module.ParseFromString(graph_bytes(trace))
        return module

    def SerializeToString(self, deterministic: bool = True) -> bytes:
        """What stands for the model in this process."""
        return self._data

    def ParseFromString(self, serialized: bytes) -> int:
        """Become the model that bytes stand for; returns how many they are.

        Raises:
            TraceError: They stand for none of this process.
        """
        trace = trace_of(serialized)
        count = len(trace.call.weights) + len(trace.call.states) + trace.input_count
        parameters = [HloInstructionProto(n, f"p{n}", "parameter", n) for n in range(count)]
        self.name, self._data = trace.segment.name, serialized
        self.computations = [HloComputationProto(0, 0, self.name, parameters)]
        return len(serialized)


__getattr__ = names_of(__name__, "a traced model's operations stand in its StableHLO text.")

"""`torch_neuronx.proto.metaneff_pb2`: what a compiled model's inputs and results are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any

from neuron_tools.compat.absent import Absent, names_of

__all__ = ["MetaNeff", "MetaTensor"]


class _Type(IntEnum):
    """What an input is."""

    UNUSED = 0
    USER_INPUT = 1
    INPUT_WEIGHT = 2
    INPUT_STATE = 3


@dataclass
class MetaTensor:
    """An input or a result.

    Attributes:
        shape: Its extents.
        data_type: Name of its element type in PyTorch.
        type: What it is.
        checkpoint_key: Name of a weight or state.
        user_input_key: Name of an input of the call.
    """

    shape: list[int] = field(default_factory=list)
    data_type: str = ""
    type: int = _Type.UNUSED
    checkpoint_key: bytes = b""
    user_input_key: bytes = b""

    Type = _Type
    DataType = Absent("MetaTensor.DataType", "an element type is named as in PyTorch.")


@dataclass
class MetaNeff:
    """The inputs and results of a compiled model.

    Attributes:
        input_tensors: Inputs of the call, then states, then weights.
        output_tensors: Results of the call, then the next values of states.
        output_aliases_to: Number of a result -> number of the state that it is the next value of.
        serialized_graph_def: What stands for the model in the process that traced it.
    """

    input_tensors: list[MetaTensor] = field(default_factory=list)
    output_tensors: list[MetaTensor] = field(default_factory=list)
    output_aliases_to: dict[int, int] = field(default_factory=dict)
    serialized_graph_def: bytes = b""

    def SerializeToString(self, deterministic: bool = True) -> bytes:
        """As JSON: AWS's own format holds the same."""
        return json.dumps(asdict(self), default=_text).encode()

    def ParseFromString(self, serialized: bytes) -> int:
        """Become what `SerializeToString` wrote; returns how many bytes that is."""
        kept = json.loads(serialized)
        self.input_tensors = [*map(_tensor, kept["input_tensors"])]
        self.output_tensors = [*map(_tensor, kept["output_tensors"])]
        self.output_aliases_to = {int(number): state for number, state in kept["output_aliases_to"].items()}
        self.serialized_graph_def = kept["serialized_graph_def"].encode()
        return len(serialized)


def _text(value: bytes) -> str:
    return value.decode()


def _tensor(kept: dict[str, Any]) -> MetaTensor:
    keys = {name: kept[name].encode() for name in ("checkpoint_key", "user_input_key")}
    return MetaTensor(**{**kept, **keys, "type": _Type(kept["type"])})


__getattr__ = names_of(__name__, "a compiled model holds what its inputs are.")

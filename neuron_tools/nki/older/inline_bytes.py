"""Instructions that kernels of the older dialect give as bytes: those that are known are carried out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.nki.isa.gpsimd import nonzero_with_count
from neuron_tools.nki.isa.issue import refuse
from neuron_tools.nki.tensor import NkiTensor

_NONZERO_WITH_COUNT = "f2"


def inline_asm_bytes(
    dsts: Sequence[NkiTensor], srcs: Sequence[NkiTensor], asm_bytes: str, engine: Any = None, **_options: Any
) -> None:
    """Issue an instruction given as bytes with places for its operands.

    Args:
        dsts: Tiles written.
        srcs: Tiles read.
        asm_bytes: The bytes in hexadecimal, "_" between them, operands in braces.
        engine: The engine that runs it.

    Raises:
        NkiValidationError: It is not one of the instructions that are known (nonzero_with_count).
    """
    fields = asm_bytes.split("_")
    if fields[0] != _NONZERO_WITH_COUNT:
        raise refuse(
            f"inline_asm_bytes: instruction 0x{fields[0]} is not known here; use a function of nki.isa"
        )
    literals = [field for field in _without_operands(asm_bytes).split("_") if field]
    offset, padding = _literal_numbers(literals)
    nonzero_with_count(dsts[0], srcs[0], index_offset=offset, padding_val=padding)


def _without_operands(text: str) -> str:
    kept, depth = [], 0
    for character in text:
        depth += (character == "{") - (character == "}")
        if depth == 0 and character != "}":
            kept.append(character)
    return "".join(kept)


def _literal_numbers(literals: list[str]) -> tuple[int, int]:
    """Index offset and padding of nonzero_with_count: little endian, after eight bytes, four zeros apart."""
    first = literals[8:12]
    second = literals[16:20]
    return (
        int.from_bytes(bytes.fromhex("".join(first)), "little", signed=True),
        int.from_bytes(bytes.fromhex("".join(second)), "little", signed=True),
    )

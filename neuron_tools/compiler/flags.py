"""Reads options in the form of AWS's compiler command, as `NEURON_CC_FLAGS` and `compiler_args` give them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.errors import UsageError

VARIABLE = "NEURON_CC_FLAGS"
CAST_KINDS = {"none": "none", "matmult": "matmult", "matmul": "matmult", "all": "all"}
CAST_TYPES = {"bf16": "bf16", "fp16": "f16", "tf32": "tf32", "fp8_e4m3": "f8E4M3FN"}
LOGICAL_CORES = {"1": "1", "2": "2"}


@dataclass(frozen=True, slots=True)
class CompilerFlags:
    """What a command line of options says.

    Attributes:
        options: What it asks of the compiler.
        target: Generation or instance; "" where it names none.
        lnc: Physical cores of a logical NeuronCore; 0 where it does not say.
        cache_directory: Where compiled graphs are kept; "" where it names none.
        without_effect: Options that change nothing here, in order.
    """

    options: CompilerOptions = field(default_factory=CompilerOptions)
    target: str = ""
    lnc: int = 0
    cache_directory: str = ""
    without_effect: tuple[str, ...] = ()


def parse_flags(
    flags: str | Sequence[str],
    *,
    with_environment: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> CompilerFlags:
    """Read options; later ones win.

    Args:
        flags: A command line or its words, e.g. "--auto-cast=matmult --auto-cast-type bf16 -O1".
        with_environment: Let those of `$NEURON_CC_FLAGS` stand before them.
        environment: Variables.

    Raises:
        UsageError: An option has a value that does not exist.
    """
    words = shlex.split(flags) if isinstance(flags, str) else [str(word) for word in flags]
    if with_environment:
        words = [*shlex.split(environment.get(VARIABLE, "")), *words]
    found = CompilerFlags()
    for name, value in _pairs(words):
        found = _take(found, name, value)
    return found


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Option and value, "" without one; a word that belongs to no option is passed over."""
    index = 0
    while index < len(words):
        name, equals, value = words[index].partition("=")
        index += 1
        if not name.startswith("-"):
            continue
        if not equals and index < len(words) and not words[index].startswith("-"):
            value = words[index]
            index += 1
        yield name.replace("_", "-"), value


def _take(found: CompilerFlags, name: str, value: str) -> CompilerFlags:
    if name == "--auto-cast":
        kind = _choice(name, value, CAST_KINDS)
        return replace(found, options=replace(found.options, auto_cast=kind))
    if name == "--auto-cast-type":
        kind = _choice(name, value, CAST_TYPES)
        return replace(found, options=replace(found.options, auto_cast_type=kind))
    if name == "--target":
        return replace(found, target=value)
    if name in ("--lnc", "--logical-nc-config"):
        return replace(found, lnc=int(_choice(name, value, LOGICAL_CORES)))
    if name == "--cache-dir":
        return replace(found, cache_directory=value)
    return replace(found, without_effect=(*found.without_effect, name))


def _choice(name: str, value: str, choices: Mapping[str, str]) -> str:
    if value not in choices:
        raise UsageError(
            f"The compiler option {name} has no value '{value}': choose one of {', '.join(choices)}."
        )
    return choices[value]

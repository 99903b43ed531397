"""Reads options in the form of AWS's compiler command, as `NEURON_CC_FLAGS` and `compiler_args` give them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeVar

from neuron_tools.compiler.flag_names import check_name
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen

Value = TypeVar("Value")
VARIABLE = "NEURON_CC_FLAGS"
MOST_CORES = 64
"""Of a NeuronCore Pipeline: those of an inf1.24xlarge."""
CAST_KINDS = {"none": "none", "matmult": "matmult", "matmul": "matmult", "all": "all"}
OLD_CASTS = {
    "all": ("all", "bf16"), "all-fp16": ("all", "f16"), "matmult": ("matmult", "bf16"),
    "matmult-bf16": ("matmult", "bf16"), "matmult-fp16": ("matmult", "f16"),
}  # fmt: skip
"""Values of neuron-cc's `--fp32-cast`, and of `--fast-math` behind "fp32-cast-"."""
FAST_MATH = {
    **{f"fp32-cast-{name}": cast for name, cast in OLD_CASTS.items()},
    "all": OLD_CASTS["all"], "none": OLD_CASTS["matmult-bf16"],
    "fast-relayout": None, "no-fast-relayout": None,
}  # fmt: skip
CAST_TYPES = {"bf16": "bf16", "fp16": "f16", "tf32": "tf32", "fp8_e4m3": "f8E4M3FN"}
LOGICAL_CORES = {"1": "1", "2": "2"}


@frozen
class CompilerFlags:
    """What a command line of options says.

    Attributes:
        options: What it asks of the compiler.
        target: Generation or instance; "" where it names none.
        lnc: Physical cores of a logical NeuronCore; 0 where it does not say.
        cache_directory: Where compiled graphs are kept; "" where it names none.
        pipeline_cores: NeuronCores of a NeuronCore Pipeline; 1: none.
    """

    options: CompilerOptions = field(default_factory=CompilerOptions)
    target: str = ""
    lnc: int = 0
    cache_directory: str = ""
    pipeline_cores: int = 1


def parse_flags(
    flags: str | Sequence[str],
    *,
    with_environment: bool = False,
    options: CompilerOptions | None = None,
    environment: Mapping[str, str] = os.environ,
) -> CompilerFlags:
    """Read options; later ones win.

    Args:
        flags: A command line or its words, e.g. "--auto-cast=matmult --auto-cast-type bf16 -O1".
        with_environment: Let those of `$NEURON_CC_FLAGS` stand before them.
        options: What holds where no option says otherwise.
        environment: Variables.

    Raises:
        UsageError: An option is misspelt, or has a value that does not exist.

    Warns:
        RuntimeWarning: An option is not known.
    """
    words = shlex.split(flags) if isinstance(flags, str) else [str(word) for word in flags]
    if with_environment:
        words = [*shlex.split(environment.get(VARIABLE, "")), *words]
    found = CompilerFlags(options or CompilerOptions())
    for name, values in _pairs(words):
        check_name(name)
        found = _take(found, name, values)
    return found


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Option and values; a word that belongs to no option is passed over."""
    index = 0
    while index < len(words):
        name, equals, value = words[index].partition("=")
        index += 1
        if not name.startswith("-"):
            continue
        first = index
        while not equals and index < len(words) and _is_value(words[index], name, index == first):
            index += 1
        yield name.replace("_", "-"), [value] if equals else words[first:index]


def _is_value(word: str, option: str, is_first: bool) -> bool:
    """Whether a word belongs to an option; that of a part of the compiler takes the part's own options."""
    return not word.startswith("-") or (is_first and option.endswith("-options"))


def _take(found: CompilerFlags, name: str, values: Sequence[str]) -> CompilerFlags:
    if name == "--fast-math":
        for word in values:
            found = _cast(found, _choice(name, word, FAST_MATH))
        return found
    value = values[0] if values else ""
    if name == "--fp32-cast":
        return _cast(found, _choice(name, value, OLD_CASTS))
    if name in ("--neuroncore-pipeline-cores", "--num-neuroncores"):
        return replace(found, pipeline_cores=_core_count(name, value))
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
    return found  # one that changes nothing here


def _cast(found: CompilerFlags, cast: tuple[str, str] | None) -> CompilerFlags:
    if cast is None:
        return found
    kind, narrow = cast
    return replace(found, options=replace(found.options, auto_cast=kind, auto_cast_type=narrow))


def _core_count(name: str, value: str) -> int:
    if not value.isdecimal() or not 1 <= int(value) <= MOST_CORES:
        raise UsageError(
            f"The compiler option {name} has the value '{value}': give the number of NeuronCores, from 1 to "
            f"{MOST_CORES}."
        )
    return int(value)


def _choice(name: str, value: str, choices: Mapping[str, Value]) -> Value:
    if value not in choices:
        raise UsageError(
            f"The compiler option {name} has no value '{value}': choose one of {', '.join(choices)}."
        )
    return choices[value]

"""What stands for a compilation in a cache on disk: module or operator, core, options, and the compiler."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Hashable, Iterator
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import neuron_tools
from neuron_tools.compiler.further_passes import FURTHER_PASSES
from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.hardware import NeuronCore

_PACKAGES = ("compiler", "hardware", "records", "simulator")
_LOWERING = ("frontends/torch_eager", "frontends/torch_lowering", "frontends/jax")
_LOWERED_WITH = ("torch", "torch-mlir", "jax", "jaxlib", "numpy")
"""Distributions that a Program of a PyTorch operator depends on."""


def module_text(module: Module) -> Iterator[bytes]:
    """All of a module that compiling it depends on, sources included, piece by piece."""
    for part in (
        module.name, module.parameters, module.results, module.parameter_kinds, module.parameter_names,
        module.warnings, module.aliases,
    ):  # fmt: skip
        yield repr(part).encode()
    for records in (module.values, module.operations, module.framework):
        for record in records:
            yield repr(record).encode()


def compilation_key(module: Module, core: NeuronCore, options: CompilerOptions) -> str:
    """Equal where compiling gives the same Program."""
    summed = _of_compiler(core, options)
    for piece in module_text(module):
        summed.update(piece)
        summed.update(b"\0")
    return summed.hexdigest()[:40]


def operation_key(signature: Hashable, core: NeuronCore, options: CompilerOptions) -> str:
    """Equal where lowering and compiling an operator of PyTorch's own gives the same Program.

    Args:
        signature: Name and arguments, in a form whose text is the same in every process.
        core: What to compile for.
        options: How to compile.
    """
    summed = _of_compiler(core, options)
    summed.update(repr((signature, _fingerprint(_LOWERING), _versions())).encode())
    return summed.hexdigest()[:40]


def _of_compiler(core: NeuronCore, options: CompilerOptions) -> hashlib._Hash:
    summed = hashlib.sha256(compiler_fingerprint().encode())
    summed.update(repr((core, sorted(asdict(options).items()), FURTHER_PASSES.foreign())).encode())
    return summed


@functools.cache
def _versions() -> tuple[str, ...]:
    """Of what lowers operators; empty where one is not installed."""
    return tuple(map(_version, _LOWERED_WITH))


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def compiler_fingerprint() -> str:
    """Stands for the compiler's own code: another version makes other Programs."""
    return _fingerprint(_PACKAGES)


@functools.cache
def _fingerprint(packages: tuple[str, ...]) -> str:
    folder = Path(neuron_tools.__file__).parent
    summed = hashlib.sha256()
    for package in packages:
        for file in sorted((folder / package).rglob("*.*")):
            if file.suffix in (".py", ".json", ".csv"):
                status = file.stat()
                summed.update(f"{file.name}:{status.st_size}:{status.st_mtime_ns}\n".encode())
    return summed.hexdigest()

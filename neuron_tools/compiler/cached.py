"""What stands for a compilation in a cache on disk: module, core, options, and the compiler itself."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import neuron_tools
from neuron_tools.compiler.further_passes import FURTHER_PASSES
from neuron_tools.compiler.hlo import Module
from neuron_tools.compiler.options import CompilerOptions
from neuron_tools.hardware import NeuronCore

_PACKAGES = ("compiler", "hardware", "records", "simulator")


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
    summed = hashlib.sha256(compiler_fingerprint().encode())
    summed.update(repr((core, sorted(asdict(options).items()))).encode())
    for piece in module_text(module):
        summed.update(piece)
        summed.update(b"\0")
    for name in FURTHER_PASSES.foreign():
        summed.update(name.encode())
    return summed.hexdigest()[:40]


@functools.cache
def compiler_fingerprint() -> str:
    """Stands for the compiler's own code: another version makes other Programs."""
    folder = Path(neuron_tools.__file__).parent
    summed = hashlib.sha256()
    for package in _PACKAGES:
        for file in sorted((folder / package).rglob("*.*")):
            if file.suffix in (".py", ".json", ".csv"):
                status = file.stat()
                summed.update(f"{file.name}:{status.st_size}:{status.st_mtime_ns}\n".encode())
    return summed.hexdigest()

"""The compiler's front end and driver as nki-library's tests call them: trace a kernel, write it compiled."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from neuron_tools import hardware
from neuron_tools.frontends.nki.programs import programs_of
from neuron_tools.frozen import frozen
from neuron_tools.neff import Neff, write_neff
from neuron_tools.nki.kernel import Kernel, jit
from neuron_tools.nki.run import Run

_GENERATIONS = {"gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}


@frozen
class Operation:
    """The instructions of a kernel, printable.

    Attributes:
        name: The kernel's name.
        run: What tracing it left.
    """

    name: str
    run: Run

    def print(self, file: TextIO | None = None, **_options: Any) -> None:
        """Write one line per instruction: its kind and where it stands in the kernel."""
        trace = self.run.traces[0]
        out = file or sys.stdout
        out.write(f"module @{self.name}\n")
        for kind, site, *_ in trace.row_table().tolist():
            out.write(f"  {trace.kind_list[kind].name}  // {trace.describe_site(site)}\n")


@frozen
class Module:
    """A traced kernel.

    Attributes:
        operation: Its instructions.
    """

    operation: Operation


@frozen
class FrontEndResult:
    """What a front end makes of a kernel.

    Attributes:
        module: The traced kernel.
        kernel: The kernel.
        output_names: Names of its results, where they were given.
    """

    module: Module
    kernel: Kernel
    output_names: tuple[str, ...] = ()


class FrontEnd:
    """Traces kernels for given inputs, with all checks of a plain call."""

    def compile(
        self,
        kernel: Any,
        inputs: Mapping[str, Any],
        target: str = "trn2",
        lnc: int = 1,
        output_names: Sequence[str] | None = None,
        **_options: Any,
    ) -> FrontEndResult:
        """Trace a kernel.

        Args:
            kernel: A kernel, or its function.
            inputs: Its arguments, by name.
            target: Generation, e.g. "trn2" or "gen3".
            lnc: Physical cores of a logical NeuronCore: 1 or 2.
            output_names: What to call its results.

        Raises:
            NkiError: The kernel breaks a rule; the text names its line.
        """
        wanted: Kernel = kernel if isinstance(kernel, Kernel) else jit(kernel)
        core = hardware.get(_GENERATIONS.get(target, target))
        placed = Kernel(wanted.func, grid=(lnc,) if lnc > 1 else (), core=core)
        run = placed.run(**inputs, values=False)
        module = Module(Operation(placed.name, run))
        return FrontEndResult(module, placed, tuple(output_names or ()))


class ParserFrontEnd(FrontEnd):
    """The front end up to NKI 0.6, which parses kernels."""


class TracerFrontEnd(FrontEnd):
    """The front end from NKI 0.7 on, which lets Python run them."""


@frozen
class CompileOptions:
    """How to compile.

    Attributes:
        target: Generation.
        lnc: Physical cores of a logical NeuronCore.
        output_path: File for the compiled kernel.
        artifacts_dir: Folder for what else a compiler writes; unused here.
        neuronx_cc_args: Options of AWS's compiler; unused here.
    """

    target: str = "trn2"
    lnc: int = 1
    output_path: str = "file.neff"
    artifacts_dir: str = "."
    neuronx_cc_args: tuple[str, ...] = ()

    def disable_backend_optimizations(self) -> CompileOptions:
        """The same options: the simulated compiler has no such passes to leave out."""
        return replace(self)


@frozen
class CompiledKernel:
    """A kernel compiled to a file.

    Attributes:
        neff_path: The file, which `neuron-profile capture -n` runs: the Program of the first physical core.
    """

    neff_path: str

    @classmethod
    def from_frontend(cls, result: FrontEndResult, options: CompileOptions) -> CompiledKernel:
        """Compile a traced kernel and write it to `options.output_path`.

        Raises:
            NkiError: Its tiles fit nowhere, or race for an address.
            NeffError: The file cannot be written.
        """
        program = programs_of(result.kernel, result.module.operation.run)[0]
        path = Path(options.output_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_neff(Neff(program), path)
        return cls(str(path))

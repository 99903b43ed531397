"""Published kernels as their authors wrote them, from a checkout, through the NKI front end.

`NEURON_TOOLS_PUBLIC_KERNELS` names a folder with checkouts of the repositories `AccelOpt` and
`trainium-kernel-fusion`; what is not there is left out. None of their text is part of this project.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.fidelity_kernels.outcome import Outcome, core_of, execute
from neuron_tools.compat import install
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.nki.lowering import lower
from neuron_tools.records.program import Engine, Program, Purpose

FOLDER = "NEURON_TOOLS_PUBLIC_KERNELS"
_DTYPES = {"fp32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16)}
_ACTIVE = {
    "scalar_active_share": Engine.SCALAR, "vector_active_share": Engine.VECTOR,
    "gpsimd_active_share": Engine.GPSIMD,
}  # fmt: skip


@frozen
class Row:
    """One published number of a kernel, and what ours has.

    Attributes:
        kernel, parameters, dtype, target: What ran where.
        repository, study: Where it was published.
        quantity: What was measured.
        measured, predicted: In `unit`.
    """

    kernel: str
    parameters: str
    dtype: str
    target: str
    repository: str
    study: str
    quantity: str
    measured: float
    predicted: float
    unit: str

    @property
    def error(self) -> float:
        """Predicted / measured - 1; 0 where both are 0."""
        if not self.measured:
            return 0.0 if not self.predicted else float("inf")
        return self.predicted / self.measured - 1.0


def folder() -> Path | None:
    """The folder with the checkouts, None where the variable is not set."""
    name = os.environ.get(FOLDER, "")
    return Path(name) if name else None


def rows() -> Iterator[Row]:
    """Every published number whose kernel is in the folder."""
    root = folder()
    if root is None:
        return
    install()
    seen: dict[tuple[str, ...], list[Outcome]] = {}
    for row in _published():
        if not (root / row["repository"]).is_dir():
            continue
        key = row["repository"], row["kernel"], row["parameters"], row["dtype"], row["target"]
        if key not in seen:
            seen = {key: _outcomes(root / row["repository"], row)}
        yield Row(
            row["kernel"], row["parameters"], row["dtype"], row["target"], row["repository"], row["study"],
            row["quantity"], float(row["value"]), _predicted(seen[key], row["quantity"]), row["unit"],
        )  # fmt: skip


def _published() -> list[dict[str, str]]:
    text = (resources.files("benchmarks.fidelity_kernels") / "public_kernels.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _predicted(outcomes: list[Outcome], quantity: str) -> float:
    """The sum over the launches of one call."""
    if quantity.startswith("spill_"):
        purpose = Purpose.SPILL_SAVE if "save" in quantity else Purpose.SPILL_RELOAD
        return float(sum(_bytes_for(o.programs[0], purpose) for o in outcomes))
    engine = _ACTIVE.get(quantity)
    if engine is not None:
        return sum(outcome.active_ns(engine) / outcome.profile_ns for outcome in outcomes)
    return sum(outcome.quantity(quantity) for outcome in outcomes)


def _bytes_for(program: Program, purpose: Purpose) -> int:
    return int(program.dmas["bytes"][program.dmas["purpose"] == purpose].sum())


def _outcomes(checkout: Path, row: Mapping[str, str]) -> list[Outcome]:
    """One outcome for each launch of a kernel."""
    core = core_of(row["target"])
    sizes = {name: int(value) for name, value in (pair.split("=") for pair in row["parameters"].split())}
    launches = _bench_launches if row["repository"] == "AccelOpt" else _fusion_launches
    outcomes = []
    for kernel, arguments in launches(checkout, row["kernel"], sizes, _DTYPES[row["dtype"]]):
        outcomes.append(execute([_program(kernel, arguments, core)], core))
    return outcomes


def _program(kernel: Any, arguments: list[Any], core: NeuronCore) -> Program:
    kernel.core = core
    (trace,) = kernel.run(*arguments, values=False).traces
    return lower(trace, kernel.name).program


def _bench_launches(
    checkout: Path, name: str, sizes: Mapping[str, int], dtype: np.dtype[Any]
) -> Iterator[tuple[Any, list[Any]]]:
    """The launch of a baseline of NKIBench, with the inputs that its reference makes."""
    del sizes, dtype  # its files hold one shape
    kernel = imported(next((checkout / "NKIBench" / "kernels").glob(f"{name}_[A-Z]*.py")))
    reference = imported(next((checkout / "NKIBench" / "reference").glob(f"{name}_[A-Z]*.py")))
    yield kernel.kernel, reference.transform_to_nki_inputs(reference.get_inputs())


def _fusion_launches(
    checkout: Path, name: str, sizes: Mapping[str, int], dtype: np.dtype[Any]
) -> Iterator[tuple[Any, list[Any]]]:
    """The launches of a kernel of trainium-kernel-fusion, on zeros."""
    for kernel, shapes in fusion_kernels(checkout, name, sizes):
        yield kernel, [np.zeros(shape, dtype) for shape in shapes]


def fusion_kernels(
    checkout: Path, name: str, sizes: Mapping[str, int]
) -> Iterator[tuple[Any, list[tuple[int, ...]]]]:
    """The kernels of trainium-kernel-fusion that one call launches, with the shapes that each takes."""
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    if name.endswith("_attention"):
        module = importlib.import_module(f"kernels.{name.removesuffix('_attention')}.attention")
        yield getattr(module, name), [(sizes["d_head"], sizes["seq"])] * 3
        return
    m, k, n = sizes["m"], sizes["k"], sizes["n"]
    shapes: list[tuple[int, ...]] = [(k, m), (k, n), (1, n)]
    if name == "mlp_baseline":
        module = importlib.import_module("kernels.baseline.mlp_gemm")
        yield module.gemm_kernel, shapes
        yield module.gelu_kernel, [(m, n)]
        return
    module = importlib.import_module("kernels.fused.mlp")
    yield (module.fused_mlp_taylor if name == "mlp_fused_taylor" else module.fused_mlp_pwl), shapes


def imported(path: Path) -> ModuleType:
    """A checkout's file, imported by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""Whether published kernels, as their authors wrote them, give the values of their references.

    NEURON_TOOLS_PUBLIC_KERNELS=FOLDER python -m benchmarks.public_values [NAME ...]

`FOLDER` holds checkouts named `AccelOpt` (the baselines of NKIBench, with their numpy references),
`nki-samples` (the fused Mamba kernels) and `trainium-kernel-fusion` (attention and MLPs); names choose some.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fidelity_kernels.outcome import core_of
from benchmarks.fidelity_kernels.public import FOLDER, folder, fusion_kernels, imported
from neuron_tools.compat import install
from neuron_tools.frozen import frozen

LIMIT = 2e-5
"""Largest norm of the difference over the reference's norm that NKIBench allows."""
_MAMBA = "src/nki_samples/tutorials/fused_mamba/mamba_nki_kernels.py"
_MAMBA_SHAPE = (1, 256, 512, 16)  # batch, channels, sequence, states
_FUSION = ("baseline_attention", "fused_attention", "mlp_baseline", "mlp_fused", "mlp_fused_taylor")
_FUSION_SIZES = {"d_head": 128, "seq": 1024, "m": 256, "k": 256, "n": 1024}


@frozen
class Case:
    """A kernel with its file, and the reference's where it has one.

    Attributes:
        name: As NKIBench calls it, or the function's name.
        kernel: File of the kernel, or the checkout that it is in.
        reference: File of inputs, reference and layouts; None: the reference is ours.
    """

    name: str
    kernel: Path
    reference: Path | None


def cases(root: Path) -> list[Case]:
    """All kernels of the checkouts that are there."""
    bench = root / "AccelOpt" / "NKIBench"
    found = []
    for kernel in sorted((bench / "kernels").glob("*.py")):
        stem = kernel.stem.rpartition("_")[0]
        (reference,) = (bench / "reference").glob(f"{stem}_numpy_*.py")
        found.append(Case(stem, kernel, reference))
    mamba = root / "nki-samples" / _MAMBA
    if mamba.is_file():
        found += [Case(f"mamba_{version}", mamba, None) for version in ("v1", "v2", "v3")]
    fusion = root / "trainium-kernel-fusion"
    return found + [Case(name, fusion, None) for name in _FUSION if fusion.is_dir()]


def relative_error(case: Case) -> float:
    """Norm of what kernel and reference differ by over the norm of the reference, at worst."""
    install()
    np.random.seed(0)  # the references draw their inputs from the global generator
    run = _bench if case.reference else _fusion if case.name in _FUSION else _mamba
    outputs, references = run(case)
    return max(_error(output, reference) for output, reference in zip(outputs, references, strict=True))


def _error(output: Any, reference: Any) -> float:
    exact = np.asarray(reference, np.float64)
    return float(np.linalg.norm(np.asarray(output, np.float64) - exact) / np.linalg.norm(exact))


def _bench(case: Case) -> tuple[Sequence[Any], Sequence[Any]]:
    assert case.reference is not None
    task = imported(case.reference)
    inputs = task.get_inputs()
    reference = task.forward(*inputs)
    kernel = imported(case.kernel).kernel
    kernel.core = core_of("trn1")
    result = kernel(*task.transform_to_nki_inputs(inputs))
    references = reference if isinstance(reference, tuple) else (reference,)
    return task.transform_nki_outputs(result, reference), references


def _fusion(case: Case) -> tuple[Sequence[Any], Sequence[Any]]:
    generator = np.random.default_rng(0)
    value: Any = None
    for kernel, shapes in fusion_kernels(case.kernel, case.name, _FUSION_SIZES):
        kernel.core = core_of("trn2")
        if value is None:
            operands = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
        value = kernel(*operands) if value is None else kernel(value)
    exact = [operand.astype(np.float64) for operand in operands]
    if case.name.endswith("attention"):
        return [value], [_attention(*exact)]
    total = exact[0].T @ exact[1] + exact[2]
    return [value], [_gelu_by_tanh(total) if case.name.endswith("taylor") else _gelu(total)]


def _attention(queries: Any, keys: Any, values: Any) -> Any:
    """Of tensors with a column for each place of the sequence."""
    scores = queries.T @ keys
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values.T


def _gelu(x: Any) -> Any:
    return x * 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def _gelu_by_tanh(x: Any) -> Any:
    return x * 0.5 * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def _mamba(case: Case) -> tuple[Sequence[Any], Sequence[Any]]:
    batch, channels, sequence, states = _MAMBA_SHAPE
    generator = np.random.default_rng(0)
    delta, u = (generator.random((batch, channels, sequence), np.float32) for _ in range(2))
    rates = -generator.random((channels, states), np.float32)
    inward, outward = (generator.random((batch, states, sequence), np.float32) for _ in range(2))
    kernel = getattr(imported(case.kernel), case.name)
    kernel.core = core_of("trn1")
    return [kernel(delta, u, rates, inward, outward)], [_selective_scan(delta, u, rates, inward, outward)]


def _selective_scan(delta: Any, u: Any, rates: Any, inward: Any, outward: Any) -> Any:
    """sum over states of C h, with h = exp(delta A) h + delta u B along the sequence, in float64."""
    state = np.zeros((*delta.shape[:2], rates.shape[1]))
    steps = []
    for at in range(delta.shape[2]):
        width = delta[:, :, at, None].astype(np.float64)
        state = np.exp(width * rates) * state + width * u[:, :, at, None] * inward[:, None, :, at]
        steps.append((state * outward[:, None, :, at]).sum(-1))
    return np.stack(steps, -1)


def results(chosen: Sequence[Case]) -> Iterator[tuple[Case, float, float]]:
    """Each kernel with its error and the processor seconds that it took."""
    for case in chosen:
        begin = time.process_time()
        error = relative_error(case)
        yield case, error, time.process_time() - begin


def main(names: Sequence[str]) -> int:
    """Print a line for each kernel.

    Returns:
        0 where all are within the limit, 1 where one is not, 2 where there is nothing to run.
    """
    root = folder()
    if root is None:
        print(f"Set {FOLDER} to the folder that holds checkouts of the kernels' repositories.")
        return 2
    chosen = [case for case in cases(root) if not names or case.name in names]
    if not chosen:
        print(f"{root} holds no kernel of that name; check out AccelOpt and nki-samples there.")
        return 2
    wrong = 0
    for case, error, seconds in results(chosen):
        wrong += not error <= LIMIT
        print(
            f"{case.name:45} {error:9.2e} {'right' if error <= LIMIT else 'WRONG'} {seconds:7.1f} s",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

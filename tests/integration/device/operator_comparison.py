"""Runs PyTorch's own operator database on `neuron` and compares values, strides and gradients with the CPU.

`python -m tests.integration.device.operator_comparison` runs all of it and writes docs/operators.md.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo, SampleInput

HALF_DTYPES = (torch.float16, torch.bfloat16)
OTHER_DTYPES = (torch.float32, torch.int64, torch.complex64, torch.bool, torch.bfloat16)
# Their results' values are whatever the memory held.
UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
# Operators that differ, and why; docs/operators.md lists them from here.
EXPECTED_FAILURES = {
    "sparse.sampled_addmm": "works on sparse CSR tensors; the device has strided tensors only",
    "sparse.mm.reduce": "works on sparse CSR tensors; the device has strided tensors only",
    "to_sparse": "makes a sparse tensor; the device has strided tensors only",
    "tensor_split": "the sample gives the split points as a device tensor, which PyTorch wants on the CPU; "
    "it refuses so on every accelerator",
}
DOCUMENT = Path(__file__).parents[3] / "docs" / "operators.md"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one operator did with one dtype; `difference` is empty where the device agrees with the CPU."""

    operator: str
    dtype: torch.dtype
    checked_gradients: bool
    difference: str

    @property
    def passed(self) -> bool:
        return not self.difference


def database() -> list[OpInfo]:
    """PyTorch's operators; to import them takes longer than to collect the tests of this folder."""
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def operator_name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def dtypes_of(op: OpInfo) -> list[torch.dtype]:
    """float32 (or the first that the operator takes), and the half-precision formats that the CPU has."""
    supported = op.supported_dtypes("cpu")
    first = next((dtype for dtype in OTHER_DTYPES if dtype in supported), None)
    if first is None:
        return []
    return [first, *(dtype for dtype in HALF_DTYPES if dtype in supported and dtype != first)]


def compare(op: OpInfo, dtype: torch.dtype) -> Outcome | None:
    """Compares one operator's first sample; None where the CPU itself cannot run it."""
    with_gradients = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    sample = _first_sample(op, dtype, with_gradients)
    if sample is None:
        return None
    try:
        expected = _run(op, sample, "cpu", with_gradients)
    except Exception:
        return None
    try:
        actual = _run(op, sample, "neuron", with_gradients)
        _check(op, sample, expected, actual, with_gradients)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip()}"
        return Outcome(operator_name(op), dtype, with_gradients, " ".join(reason.split())[:300])
    return Outcome(operator_name(op), dtype, with_gradients, "")


def compare_all(
    operators: Iterable[OpInfo], progress: Callable[[str], None] = lambda _: None
) -> Iterator[Outcome]:
    """Outcomes of many operators, each in all its dtypes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in operators:
            progress(operator_name(op))
            for dtype in dtypes_of(op):
                outcome = compare(op, dtype)
                if outcome is not None:
                    yield outcome


def _first_sample(op: OpInfo, dtype: torch.dtype, with_gradients: bool) -> SampleInput | None:
    torch.manual_seed(0)
    try:
        return next(iter(op.sample_inputs("cpu", dtype, requires_grad=with_gradients)), None)
    except Exception:
        return None


def _moved(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to(device, copy=True).requires_grad_(value.requires_grad)
    if isinstance(value, torch.device) or value == "cpu":
        return torch.device(device)
    return value


def _run(op: OpInfo, sample: SampleInput, device: str, with_gradients: bool) -> tuple[Any, list[Any]]:
    arguments = (sample.input, sample.args, sample.kwargs)
    first, rest, named = tree_map(lambda value: _moved(value, device), arguments)
    leaves = [leaf for leaf in tree_leaves((first, rest, named)) if isinstance(leaf, torch.Tensor)]
    torch.manual_seed(1)
    result = sample.output_process_fn_grad(op.op(first, *rest, **named))
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    outputs = [out for out in tree_leaves(result) if isinstance(out, torch.Tensor) and out.requires_grad]
    if not with_gradients or not wanted or not outputs:
        return result, []
    seeds = [_ramp(out) for out in outputs]
    return result, list(torch.autograd.grad(outputs, wanted, seeds, allow_unused=True))


def _ramp(tensor: torch.Tensor) -> torch.Tensor:
    ramp = torch.linspace(0.5, 1.5, max(tensor.numel(), 1))[: tensor.numel()]
    return ramp.reshape(tensor.shape).to(tensor.dtype).to(tensor.device)


class _RandomnessWatch(TorchDispatchMode):
    """Notices operators that draw random numbers."""

    drew = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.drew |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def _is_random(op: OpInfo, sample: SampleInput) -> bool:
    first, rest, named = tree_map(
        lambda value: _moved(value, "cpu"), (sample.input, sample.args, sample.kwargs)
    )
    with _RandomnessWatch() as watch:
        op.op(first, *rest, **named)
    return watch.drew


def _check(op: OpInfo, sample: SampleInput, expected: Any, actual: Any, with_gradients: bool) -> None:
    expected_leaves, expected_structure = tree_flatten(expected)
    actual_leaves, actual_structure = tree_flatten(actual)
    if expected_structure != actual_structure:
        raise AssertionError(f"results have another structure: {actual_structure}, not {expected_structure}")
    only_form = op.name in UNINITIALISED
    for want, got in zip(expected_leaves, actual_leaves):
        _check_form(want, got)
    try:
        if not only_form:
            for want, got in zip(expected_leaves, actual_leaves):
                _check_value(want, got)
    except AssertionError:
        if not _is_random(op, sample):
            raise


def _check_form(want: Any, got: Any) -> None:
    if not isinstance(want, torch.Tensor):
        return
    if got.device.type != "neuron" and op_result_belongs_on_device(want):
        raise AssertionError(f"a result is on {got.device}")
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        raise AssertionError(f"{got.dtype} {tuple(got.shape)} instead of {want.dtype} {tuple(want.shape)}")
    if want.layout == torch.strided and got.stride() != want.stride():
        raise AssertionError(f"strides {got.stride()} instead of {want.stride()}")


def op_result_belongs_on_device(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided


def _check_value(want: Any, got: Any) -> None:
    if isinstance(want, torch.Tensor):
        torch.testing.assert_close(got.detach().cpu(), want.detach(), equal_nan=True)
    elif isinstance(want, (bool, int, float, complex)):
        torch.testing.assert_close(got, want, equal_nan=True)


def summarise(outcomes: list[Outcome]) -> tuple[int, int]:
    """(operators that pass in every dtype, operators)."""
    failed = {outcome.operator for outcome in outcomes if not outcome.passed}
    return len({outcome.operator for outcome in outcomes}) - len(failed), len({o.operator for o in outcomes})


def document(outcomes: list[Outcome]) -> str:
    """docs/operators.md: how many operators agree, and which do not, with the reason."""
    passed, total = summarise(outcomes)
    dtypes = Counter(str(outcome.dtype).removeprefix("torch.") for outcome in outcomes)
    gradients = sum(outcome.checked_gradients for outcome in outcomes)
    failed = sorted({outcome.operator for outcome in outcomes if not outcome.passed})
    rows = [f"| `{name}` | {EXPECTED_FAILURES.get(name, 'unexplained')} |" for name in failed]
    counts = ", ".join(f"{count} in {dtype}" for dtype, count in dtypes.most_common())
    share = f"{passed} of {total} operators agree ({passed / total:.1%})"
    head = f"""# Operators on the `neuron` device

PyTorch's own operator database (`torch.testing._internal.common_methods_invocations.op_db`) run on the
device and on the CPU: the first sample of each operator, values, strides and, where the operator has them,
gradients. Written by `python -m tests.integration.device.operator_comparison`; do not edit.

PyTorch {torch.__version__}: **{share}**, in {len(outcomes)} comparisons ({counts};
{gradients} with gradients). Operators whose database entry the CPU itself cannot run are not counted.

| operator | why it differs |
|---|---|
"""
    return head + "".join(f"{row}\n" for row in rows)


def main() -> int:
    """Runs every operator, writes docs/operators.md and prints the share that passes."""
    outcomes = list(compare_all(database()))
    for outcome in outcomes:
        if not outcome.passed:
            print(f"{outcome.operator} {outcome.dtype}: {outcome.difference}", file=sys.stderr)
    passed, total = summarise(outcomes)
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(document(outcomes))
    print(f"{passed} of {total} operators agree ({passed / total:.2%}); written to {DOCUMENT}")
    return 0 if passed / total >= 0.99 else 1


if __name__ == "__main__":
    sys.exit(main())

"""One model traced for several shapes: a program for TorchScript pads each call's inputs to one of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.jit.frontend import FrontendError

from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.placement import note_loaded
from neuron_tools.frontends.torch_trace.plain_errors import keeps_errors
from neuron_tools.frontends.torch_trace.shapes import describe
from neuron_tools.frozen import frozen

_library = torch.library.Library("neuron_tools", "FRAGMENT")
_library.define("fit_bucket(Tensor[] inputs, Tensor[] padded, int bucket, str shapes) -> Tensor[]")


@frozen
class Bucket:
    """A model for one shape of its inputs.

    Attributes:
        model: A traced model; its parameters are its states.
        shapes: Those of its inputs.
    """

    model: torch.jit.ScriptModule
    shapes: Sequence[Sequence[int]]


class _Buckets(torch.nn.Module):
    """Models as `bucket_0`, ..., and what the kernel takes besides tensors as `constant_0`, ..."""

    def __init__(self, models: Sequence[torch.nn.Module], constants: Sequence[Any]) -> None:
        super().__init__()
        for number, model in enumerate(models):
            self.add_module(f"bucket_{number}", model)
        for number, constant in enumerate(constants):
            setattr(self, f"constant_{number}", constant)


def share_states(buckets: Sequence[Bucket], values: Sequence[torch.Tensor]) -> None:
    """Give all buckets the same states: the next call, of whichever bucket, finds what the last one wrote.

    Args:
        buckets: The buckets that share them.
        values: The initial values, in the order of each bucket's states.

    Raises:
        TraceError: A bucket's states have other shapes or element types.
    """
    shared = [torch.nn.Parameter(value.detach().cpu().clone(), requires_grad=False) for value in values]
    for number, bucket in enumerate(buckets):
        own = dict(bucket.model.named_parameters())
        check_shared(number, [*map(describe, own.values())], [*map(describe, shared)])
        for name, value in zip(own, shared):
            setattr(bucket.model, name, value)


def check_shared(bucket: int, expected: Sequence[str], given: Sequence[str]) -> None:
    """Refuse shared states that a bucket does not have.

    Args:
        bucket: Its number.
        expected: Element type and shape of each of its states.
        given: Of each shared one.

    Raises:
        TraceError: They differ.
    """
    if [*expected] != [*given]:
        raise TraceError(
            f"The shared states are {', '.join(given)}, but bucket {bucket} has "
            f"{', '.join(expected) or 'none'}: give each bucket's aliases in the order of "
            "shared_state_buffer."
        )


def bucketed(
    buckets: Sequence[Bucket], kernel: Callable[..., Any], constants: Sequence[Any] = ()
) -> torch.jit.ScriptModule:
    """One TorchScript module of models that were traced for one shape each.

    Args:
        buckets: In the order in which the kernel numbers them.
        kernel: Takes a list of tensors; returns them padded, and the number of the bucket. TorchScript must
            be able to compile it.
        constants: Passed to the kernel after the tensors.

    Returns:
        A module that `torch.jit.save` keeps. Padding of results is the caller's business to take off.

    Raises:
        TraceError: TorchScript cannot compile the kernel.
    """
    shapes = [bucket.shapes for bucket in buckets]
    passed = ", ".join(f"padded[{number}]" for number in range(len(shapes[0])))
    calls = [[f"return self.bucket_{number}({passed})"] for number in range(len(buckets))]
    with chooses_buckets(kernel):
        script = torch.jit.script(_Buckets([bucket.model for bucket in buckets], constants))
        define_forward(script, ChoosingForward(shapes, len(constants), calls), kernel)
    note_loaded([script])
    return script


@contextmanager
def chooses_buckets(kernel: Callable[..., Any]) -> Iterator[None]:
    """Let what TorchScript cannot compile in the block be the fault of a bucket's kernel.

    Raises:
        TraceError: TorchScript refuses something.
    """
    try:
        yield
    except (RuntimeError, FrontendError) as error:
        reason = next(filter(None, map(str.strip, str(error).splitlines())), "")
        raise TraceError(
            f"The bucket kernel {getattr(kernel, '__name__', kernel)} is no program for TorchScript "
            f"({reason}): annotate its arguments, as in list[torch.Tensor], and keep to what "
            "torch.jit.script takes."
        ) from error


@frozen
class ChoosingForward:
    """A method that calls a kernel, then what its bucket does.

    Attributes:
        shapes: Of each bucket's inputs.
        constant_count: How many attributes `constant_<n>` the kernel takes besides the tensors.
        calls: The lines that run each bucket: inputs are in `padded`, the kernel's number is in `number`.
    """

    shapes: Sequence[Sequence[Sequence[int]]]
    constant_count: int
    calls: Sequence[Sequence[str]]

    def __str__(self) -> str:
        """Its text."""
        inputs = ", ".join(f"input_{number}" for number in range(len(self.shapes[0])))
        constants = [f"self.constant_{number}" for number in range(self.constant_count)]
        shapes = json.dumps([[[*shape] for shape in each] for each in self.shapes])
        lines = [
            f"def forward(self, {inputs}):",
            f"    inputs = [{inputs}]",
            f"    padded, number = choose_bucket({', '.join(['inputs', *constants])})",
            "    bucket = int(number)",
            f"    padded = torch.ops.neuron_tools.fit_bucket(inputs, padded, bucket, {shapes!r})",
        ]
        for bucket, call in enumerate(self.calls[:-1]):
            lines += [f"    if bucket == {bucket}:", *(f"        {line}" for line in call)]
        return "\n".join([*lines, *(f"    {line}" for line in self.calls[-1]), ""])


def define_forward(
    script: torch.jit.ScriptModule,
    forward: ChoosingForward,
    kernel: Callable[..., Any],
    cut: Callable[..., Any] | None = None,
) -> None:
    """Give a module a method that chooses a bucket.

    Args:
        script: A module that has what the method's calls name.
        forward: The method.
        kernel: Its `choose_bucket`.
        cut: Its `cut_states`, where the calls name it.
    """
    choose_bucket, cut_states = compiled(kernel), None
    if cut is not None:
        with chooses_buckets(cut):
            cut_states = compiled(cut)
    script.define(str(forward))
    del choose_bucket, cut_states  # `define` found them here by their names


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as TorchScript has it."""
    is_compiled = isinstance(function, torch.jit.ScriptFunction)
    script: Callable[..., Any] = function if is_compiled else torch.jit.script(function)
    return script


@keeps_errors
def fit_bucket(
    inputs: Sequence[torch.Tensor], padded: Sequence[torch.Tensor], bucket: int, shapes: str
) -> list[torch.Tensor]:
    """What a kernel padded, where its bucket takes it.

    Args:
        inputs: Of the call.
        padded: The same, padded.
        bucket: Its number.
        shapes: Those of each bucket's inputs, as JSON.

    Raises:
        TraceError: There is no such bucket, or it takes other shapes.
    """
    known = json.loads(shapes)
    given = [[*value.shape] for value in padded or inputs]
    if not 0 <= bucket < len(known) or given != known[bucket]:
        expected = known[bucket] if 0 <= bucket < len(known) else max(known)
        raise TraceError(
            f"Inputs of shape {', '.join(map(str, given))} do not fit bucket {bucket}, which takes "
            f"{', '.join(map(str, expected))}: trace a larger bucket, or shorten the inputs."
        )
    return [*padded]


_library.impl("fit_bucket", fit_bucket, "CompositeExplicitAutograd")

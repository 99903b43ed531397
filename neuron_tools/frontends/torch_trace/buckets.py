"""One model traced for several shapes: a program for TorchScript pads each call's inputs to one of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
        expected, given = [*map(describe, own.values())], [*map(describe, shared)]
        if expected != given:
            raise TraceError(
                f"The shared states are {', '.join(given)}, but bucket {number} has "
                f"{', '.join(expected) or 'none'}: give each bucket's aliases in the order of "
                "shared_state_buffer."
            )
        for name, value in zip(own, shared):
            setattr(bucket.model, name, value)


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
    try:
        choose_bucket = kernel if isinstance(kernel, torch.jit.ScriptFunction) else torch.jit.script(kernel)
        script = torch.jit.script(_Buckets([bucket.model for bucket in buckets], constants))
        script.define(_forward(len(shapes[0]), len(buckets), len(constants), json.dumps(shapes)))
    except (RuntimeError, FrontendError) as error:
        reason = next(filter(None, map(str.strip, str(error).splitlines())), "")
        raise TraceError(
            f"The bucket kernel {getattr(kernel, '__name__', kernel)} is no program for TorchScript "
            f"({reason}): annotate its arguments, as in list[torch.Tensor], and keep to what "
            "torch.jit.script takes."
        ) from error
    del choose_bucket  # `define` found it here by its name
    note_loaded([script])
    return script


def _forward(input_count: int, bucket_count: int, constant_count: int, shapes: str) -> str:
    """The method that calls the kernel, then the model of its bucket."""
    inputs = [f"input_{number}" for number in range(input_count)]
    constants = [f"self.constant_{number}" for number in range(constant_count)]
    passed = ", ".join(f"padded[{number}]" for number in range(input_count))
    lines = [
        f"def forward(self, {', '.join(inputs)}):",
        f"    inputs = [{', '.join(inputs)}]",
        f"    padded, number = choose_bucket({', '.join(['inputs', *constants])})",
        "    bucket = int(number)",
        f"    padded = torch.ops.neuron_tools.fit_bucket(inputs, padded, bucket, {shapes!r})",
    ]
    for number in range(bucket_count - 1):
        lines += [f"    if bucket == {number}:", f"        return self.bucket_{number}({passed})"]
    return "\n".join([*lines, f"    return self.bucket_{bucket_count - 1}({passed})", ""])


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

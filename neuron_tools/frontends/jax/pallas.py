"""Pallas kernels, which nothing compiles for a NeuronCore: refused in a sentence that says what to do."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from neuron_tools.errors import NeuronToolsError

_DESCRIPTION = "pallas_call"
_PLATFORM = "cpu"  # where JAX computes the values


class PallasError(NeuronToolsError):
    """A Pallas kernel would have to run on a NeuronCore."""


def refusing_pallas(lower_per_platform: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap JAX's `lower_per_platform` so that a Pallas kernel that is not interpreted is refused.

    Args:
        lower_per_platform: JAX's own, given the rule of each platform.
    """

    @functools.wraps(lower_per_platform)
    def wrapper(
        context: Any, description: str, rules: Mapping[str, Any], *others: Any, **options: Any
    ) -> Any:
        # An interpreted kernel gets no rule for one platform alone.
        if description == _DESCRIPTION and _PLATFORM in rules:
            rules = {**rules, _PLATFORM: _refuse}
        return lower_per_platform(context, description, rules, *others, **options)

    return wrapper


def _refuse(*operands: Any, **options: Any) -> NoReturn:
    raise PallasError(
        "Pallas kernels cannot be compiled for a NeuronCore: write the kernel in NKI, or give pallas_call "
        "interpret=True to have it carried out as plain JAX operations."
    )

"""One architecture of `transformers`: its class, its inputs, and what is its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Any

from benchmarks.zoo import inputs
from benchmarks.zoo.case import Case, Inputs
from benchmarks.zoo.small import small_model
from neuron_tools.frozen import frozen

Settings = Mapping[str, Any]


@frozen
class Architecture:
    """One architecture.

    Attributes:
        name: What tables call it.
        model: Its class in `transformers`.
        trait: What it has that others have not, in a few words.
        make_inputs: Makes its inputs.
        settings: Fields of its configuration that are neither small sizes nor defaults.
        generates: Whether `model.generate` makes tokens.
    """

    name: str
    model: str
    trait: str
    make_inputs: Callable[[], Inputs] = inputs.text
    settings: Settings = field(default_factory=dict)
    generates: bool = True

    @property
    def case(self) -> Case:
        """The architecture as a model of the zoo."""
        return Case(
            self.name, partial(small_model, self.model, self.settings), self.make_inputs, self.generates
        )


def without_text(*rows: tuple[str, str, str, Callable[[], Inputs], Settings]) -> tuple[Architecture, ...]:
    """Architectures that generate no text: name, model, trait, inputs and settings of each."""
    return tuple(Architecture(*row, generates=False) for row in rows)

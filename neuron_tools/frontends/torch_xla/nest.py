"""Tensors in a nest of lists, tuples and dictionaries, apart from what else is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from neuron_tools.frozen import frozen


@frozen
class Nest:
    """A structure with places for tensors.

    Attributes:
        structure: The nest.
        leaves: What stands in it; None where a tensor does.
        places: Where tensors stand among the leaves.
    """

    structure: pytree.TreeSpec
    leaves: tuple[Any, ...]
    places: tuple[int, ...]

    def filled(self, tensors: Sequence[Any]) -> Any:
        """The nest with these tensors in their places."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors):
            leaves[place] = tensor
        return pytree.tree_unflatten(leaves, self.structure)


def emptied(value: Any) -> tuple[Nest, list[torch.Tensor]]:
    """A nest without its tensors, and these in order."""
    leaves, structure = pytree.tree_flatten(value)
    is_tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]
    others = tuple(None if tensor else leaf for leaf, tensor in zip(leaves, is_tensor))
    places = tuple(place for place, tensor in enumerate(is_tensor) if tensor)
    return Nest(structure, others, places), [leaves[place] for place in places]

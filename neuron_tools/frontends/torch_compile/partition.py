"""How the joint graph of a forward and a backward pass is cut into two that run one after the other."""

from __future__ import annotations

from typing import Any

from torch import fx

from neuron_tools.frontends.torch_compile.known_masks import fold_known_masks


def cut_in_two(joint: fx.GraphModule, joint_inputs: Any, **how: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The graphs of the forward and of the backward pass, by PyTorch's min-cut.

    What is kept from one for the other goes through HBM, which costs more than to compute short elementwise
    chains again beside the products that read them.

    Args:
        joint: Both in one; masks of attention that its shapes make known are folded into it.
        joint_inputs: Its inputs.
        **how: AOTAutograd's other arguments of a partition.

    Returns:
        (forward, backward).
    """
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    fold_known_masks(joint)
    forward, backward = min_cut_rematerialization_partition(joint, joint_inputs, **how)
    return forward, backward

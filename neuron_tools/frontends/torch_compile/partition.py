"""How the joint graph of a forward and a backward pass is cut into two that run one after the other."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from neuron_tools.frontends.torch_compile.known_masks import fold_known_masks


def cut_in_two(joint: fx.GraphModule, joint_inputs: Any, **how: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The graphs of the forward and of the backward pass, by PyTorch's min-cut.

    What is kept from one for the other goes through HBM, which costs more than to compute short elementwise
    chains again beside the products that read them.

    A checkpoint's random results are kept: PyTorch draws them again on devices of its own list alone.

    Args:
        joint: Both in one; masks of attention that its shapes make known are folded into it.
        joint_inputs: Its inputs.
        **how: AOTAutograd's other arguments of a partition.

    Returns:
        (forward, backward).
    """
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    fold_known_masks(joint)
    _drop_detached(joint)
    _keep_random(joint)
    forward, backward = min_cut_rematerialization_partition(joint, joint_inputs, **how)
    return forward, backward


def _drop_detached(joint: fx.GraphModule) -> None:
    """Let what autograd noted of a result be the result: the min-cut does not know that it is the same."""
    for node in joint.graph.find_nodes(op="call_function", target=torch.ops.aten.detach.default):
        (source,) = node.all_input_nodes
        node.replace_all_uses_with(source)
        joint.graph.erase_node(node)


def _keep_random(joint: fx.GraphModule) -> None:
    from torch.utils.checkpoint import CheckpointPolicy

    for node in joint.graph.nodes:
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        if is_random and "recompute" in node.meta:
            for kept in (node, *(user for user in node.users if user.target is operator.getitem)):
                kept.meta["recompute"] = CheckpointPolicy.MUST_SAVE

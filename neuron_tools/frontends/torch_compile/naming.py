"""Names of what Dynamo compiles: the module whose code it is, and the parameters by attribute path."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import fx

from neuron_tools.frontends.torch_compile.provenance import ModuleRoot
from neuron_tools.frontends.torch_hooks.modules import module_path

_model_names: list[str] = []
_MEMBER = re.compile(r"(?:\._(?:modules|parameters|buffers))?\[(?:'([^']*)'|(\d+))\]|\.(\w+)")
_ROOT = re.compile(r"^[LG]\['([^']*)'\]")


def set_model_name(name: str) -> None:
    """Name the graphs that are compiled from now on.

    Args:
        name: Their names begin with it, in place of the class of their module.
    """
    _model_names[:] = [name]


def model_name() -> str:
    """The name that the program gave, or an empty one."""
    return _model_names[0] if _model_names else ""


def frame_root() -> ModuleRoot:
    """The module whose method Dynamo is compiling now, or an empty root for a plain function."""
    for name, value in _frame_locals().items():
        if isinstance(value, torch.nn.Module):
            class_name = type(value).__name__
            return ModuleRoot(f"L['{name}']", module_path(value) or class_name, class_name)
        break  # only the first argument is what the code belongs to
    return ModuleRoot()


def _frame_locals() -> dict[str, Any]:
    """Local variables of the frame being compiled."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    try:
        translator = InstructionTranslator.current_tx()
    except (AttributeError, AssertionError):  # called without Dynamo, e.g. by a test
        return {}
    names = translator.f_code.co_varnames
    ordered = sorted(translator.f_locals, key=lambda name: names.index(name) if name in names else len(names))
    return {name: translator.f_locals[name] for name in ordered if not name.startswith("_")}


def parameter_names(gm: fx.GraphModule) -> list[str]:
    """A name per placeholder of Dynamo's graph, by attribute path where it is an attribute: "l.weight"."""
    return [_name(node) for node in gm.graph.nodes if node.op == "placeholder"]


def _name(node: fx.Node) -> str:
    source = getattr(node, "_dynamo_source", None)
    if source is None:
        return str(node.name)
    text = source.name() if callable(source.name) else source.name
    root = _ROOT.match(text)
    if root is None:
        return str(node.name)
    parts = ["".join(part) for part in _MEMBER.findall(text[root.end() :])]
    parts = [part for part in parts if part not in ("_modules", "_parameters", "_buffers")]
    if not parts or parts[0].isdigit():  # an element of `args`
        parts = [root.group(1), *parts]
    return ".".join(parts)

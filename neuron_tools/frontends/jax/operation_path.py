"""What JAX's name of an operation says: program, module, transformations, primitive."""

from __future__ import annotations

import re
from functools import lru_cache

from neuron_tools.frozen import frozen

# Names that say how a computation is carried out, not which part of the program it is.
_MECHANICS = frozenset({
    "", "while", "body", "cond", "scan", "closed_call", "core_call", "core_closed_call", "custom_jvp_call",
    "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin", "checkpoint", "remat", "remat2",
    "rematted_computation", "shard_map", "shmap_body", "pjit", "jit", "xla_call", "fun", "_fun",
    "body_fun", "cond_fun",
})  # fmt: skip
_RECOMPUTED = "rematted_computation"
_BRANCH = re.compile(r"branch_\d+_fun$")
_CLASS_SCOPE = re.compile(r"eqx\.nn\.\w+$")  # equinox names the class too, below the attribute's name
_WRAPPED = re.compile(r"([\w.<>-]*)\((.*)\)$", re.DOTALL)


@frozen
class OperationPath:
    """A parsed name.

    Attributes:
        module_path: Functions, scopes and modules from the program down, dotted: "train_step.mlp".
        primitive: The operation itself: "dot_general"; "" where the name ends with a function.
        is_backward: It was made by transposition, that is for a gradient's backward pass.
        is_recomputed: It computes again what `jax.checkpoint` did not keep.
    """

    module_path: str
    primitive: str
    is_backward: bool
    is_recomputed: bool = False


@lru_cache(maxsize=16384)
def parse(path: str) -> OperationPath:
    """Take a name such as "jit(step)/transpose(jvp(mlp))/dot_general" apart."""
    components = _components(path)
    primitive = components[-1] if components and "(" not in components[-1] else ""
    scopes = components[:-1] if primitive else components
    names: list[str] = []
    is_backward = False
    for component in scopes:
        transformations, name = _unwrapped(component)
        is_backward = is_backward or "transpose" in transformations
        for part in _components(name):
            if part not in _MECHANICS and not _BRANCH.match(part) and not _CLASS_SCOPE.match(part):
                names.append(part)
    return OperationPath(".".join(names), primitive, is_backward, _RECOMPUTED in path)


def _unwrapped(component: str) -> tuple[list[str], str]:
    """Transformations around a name and the name: transpose(jvp(mlp)) -> [transpose, jvp], mlp."""
    wrappers: list[str] = []
    match = _WRAPPED.match(component)
    while match:
        wrappers.append(match[1])
        component = match[2]
        match = _WRAPPED.match(component)
    return wrappers, component


def _components(path: str) -> list[str]:
    """Split at the slashes that no parenthesis encloses."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(path):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "/" and depth == 0:
            parts.append(path[start:index])
            start = index + 1
    return [*parts, path[start:]] if path else []

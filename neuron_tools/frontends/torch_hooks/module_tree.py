"""Paths of modules: the attribute path from the outermost module, e.g. "GPT.blocks.0.attn.qkv".

Parents are learnt when a module is registered in another, so a module called directly (`model.encode(x)`)
has its full path too; trees built earlier are scanned when their root is first called.
"""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

import torch

# Wrappers that users do not think of as a level of their model.
_TRANSPARENT = frozenset(
    {"DistributedDataParallel", "FullyShardedDataParallel", "DataParallel", "OptimizedModule", "FSDPModule"}
)


class ModuleTree:
    """Knows each live module's parents and its name in each. Not kept alive: its entry goes with the module.

    Of several parents the last that lives counts. A list that stands in no module counts where there is no
    other: `layers[:4]` is one, of a moment.
    """

    def __init__(self) -> None:
        self._modules: dict[int, weakref.ref[Any]] = {}
        self._parents: dict[int, list[tuple[weakref.ref[Any], str]]] = {}
        self._root_names: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._root_counts: Counter[str] = Counter()

    def link(self, parent: Any, name: str, child: Any) -> None:
        """Remember that `child` is `parent`'s attribute `name`; a wrapper changes nothing."""
        if child is None or type(parent).__name__ in _TRANSPARENT:
            return
        key = id(child)
        if key not in self._modules:
            self._modules[key] = weakref.ref(child, lambda _: self._forget(key))
        alive = [known for known in self._parents.get(key, []) if known[0]() is not None]
        self._parents[key] = [*alive, (weakref.ref(parent), name)]

    def scan(self, root: Any) -> None:
        """Link all that is below `root` and not linked yet."""
        for module in list(root.modules()):
            for name, child in module.named_children():
                if id(child) not in self._parents:
                    self.link(module, name, child)

    def path(self, module: Any) -> str:
        """The module's path; the root is named by its class, numbered from the second of one class on."""
        names: list[str] = []
        seen = set()
        module = unwrapped(module)
        while id(module) not in seen:
            seen.add(id(module))
            parent = self._parent(module)
            if parent is None:
                break
            module, name = parent
            names.append(name)
        return ".".join([self._root_name(module), *reversed(names)])

    def _parent(self, module: Any) -> tuple[Any, str] | None:
        known = ((parent(), name) for parent, name in reversed(self._parents.get(id(module), [])))
        alive = [(parent, name) for parent, name in known if parent is not None]
        return next((each for each in alive if not self._is_loose_list(each[0])), alive[0] if alive else None)

    def _is_loose_list(self, module: Any) -> bool:
        is_list = isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict))
        return is_list and self._parent(module) is None

    def _forget(self, key: int) -> None:
        self._modules.pop(key, None)
        self._parents.pop(key, None)

    def _root_name(self, root: Any) -> str:
        key = id(root)
        known = self._root_names.get(key)
        if known is not None:
            return known[1]
        class_name = type(root).__name__
        self._root_counts[class_name] += 1
        count = self._root_counts[class_name]
        name = class_name if count == 1 else f"{class_name}#{count}"
        self._root_names[key] = (weakref.ref(root, lambda _: self._root_names.pop(key, None)), name)
        return name


def unwrapped(module: Any) -> Any:
    """The user's module inside wrappers such as DistributedDataParallel or torch.compile's."""
    while type(module).__name__ in _TRANSPARENT:
        inner = module._modules.get("_orig_mod") or module._modules.get("module")
        if not isinstance(inner, torch.nn.Module):
            break
        module = inner
    return module

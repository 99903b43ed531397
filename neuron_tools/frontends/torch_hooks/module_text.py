"""Calls of modules as text: all that making the module and calling it again takes, without the tensors' data.

A module is told by its class, its plain attributes, the shapes of its parameters and buffers, and what is
inside it. It is made again without its `__init__`, and nothing in the text is code: a profile may come from
anybody.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

Json = dict[str, Any]
LONGEST_TEXT = 1 << 20
MOST_MODULES = 2_000
_PLAIN = (bool, int, float, str)
_OWN = frozenset(nn.Module().__dict__) | {"_compiled_call_impl"}
"""What every module has; hooks and compiled calls are not told."""
_NAMESPACES = ("torch", "torch.nn.functional")
"""Where functions that a module keeps, its activation say, may come from."""


class UnwritableError(TypeError):
    """Something has no text that it can be made from again."""


def describe_call(module: nn.Module, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> str | None:
    """A call as it can be made again; None where that cannot be told, or not in a short text."""
    writer = _Writer()
    try:
        if sum(1 for _ in module.modules()) > MOST_MODULES:
            return None
        told = {
            "module": writer.module(module),
            "arguments": [writer.value(each) for each in arguments],
            "keywords": {name: writer.value(each) for name, each in keywords.items()},
            "grad": torch.is_grad_enabled(),
        }
        text = json.dumps({**told, "tensors": writer.tensors}, separators=(",", ":"))
    except UnwritableError:
        return None
    return text if len(text) <= LONGEST_TEXT else None


class _Writer:
    """Values as JSON: plain ones as they are, everything else as an object with one entry, its kind.

    Attributes:
        tensors: Shape, strides, type, whether it is on the device, wants gradients, and is a parameter.
    """

    def __init__(self) -> None:
        self.tensors: list[Json] = []
        self._numbers: dict[int, int] = {}

    def module(self, module: nn.Module) -> Json:
        """A module and those inside it.

        Raises:
            UnwritableError: It keeps what cannot be told, or has hooks.
        """
        attributes = {name: each for name, each in vars(module).items() if name not in _OWN}
        hooks = [each for name, each in vars(module).items() if name.endswith("_hooks") and name in _OWN]
        owner = type(module)
        if any(hooks) or "<" in owner.__qualname__:
            raise UnwritableError(owner.__qualname__)
        return {
            "class": [owner.__module__, owner.__qualname__, _file(owner)],
            "attributes": {name: self.value(each) for name, each in attributes.items()},
            "parameters": {name: self._tensor(each) for name, each in module._parameters.items()},
            "buffers": {name: self._tensor(each) for name, each in module._buffers.items()},
            "children": {
                name: None if each is None else self.module(each) for name, each in module._modules.items()
            },
            "training": module.training,
        }

    def value(self, value: Any) -> Any:
        """Any value.

        Raises:
            UnwritableError: It cannot be told.
        """
        if value is None or type(value) in _PLAIN:
            return value
        if isinstance(value, torch.Tensor):
            return {"tensor": self._tensor(value)}
        if isinstance(value, (torch.dtype, torch.device)):
            return {"dtype" if isinstance(value, torch.dtype) else "device": str(value)}
        if type(value) in (tuple, list, torch.Size):
            kind = "list" if type(value) is list else "tuple"
            return {kind: [self.value(each) for each in value]}
        if type(value) is dict and all(isinstance(name, str) for name in value):
            return {"dict": {name: self.value(each) for name, each in value.items()}}
        found = _function_name(value)
        if found is None:
            raise UnwritableError(type(value).__name__)
        return {"function": found}

    def _tensor(self, tensor: torch.Tensor | None) -> int | None:
        if tensor is None:
            return None
        number = self._numbers.get(id(tensor))
        if number is None:
            if type(tensor) not in (torch.Tensor, nn.Parameter, nn.Buffer):
                raise UnwritableError(type(tensor).__name__)
            number = self._numbers[id(tensor)] = len(self.tensors)
            told = {"shape": list(tensor.shape), "stride": list(tensor.stride()), "dtype": str(tensor.dtype)}
            kind = {"parameter": isinstance(tensor, nn.Parameter), "grad": tensor.requires_grad}
            self.tensors.append({**told, **kind, "device": tensor.device.type})
        return number


def _file(owner: type) -> str:
    try:
        return inspect.getfile(owner)
    except (TypeError, OSError):
        return ""


def _function_name(value: Any) -> list[str] | None:
    """Where a function of torch's is found."""
    name = getattr(value, "__name__", "")
    for namespace in _NAMESPACES:
        if callable(value) and getattr(importlib.import_module(namespace), name, None) is value:
            return [namespace, name]
    return None


FindClass = Callable[[str, str, str], Any]
"""Module, qualified name and file -> a class."""


class RecordedCall:
    """A call that was told, made again.

    Args:
        text: Of `describe_call`.
        find_class: Finds the classes that are no part of torch.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: The text is none of `describe_call`.
    """

    def __init__(self, text: str, find_class: FindClass) -> None:
        self._told: Json = json.loads(text)
        self._find_class = find_class
        self._tensors: list[Any] = [_made(each) for each in self._told["tensors"]]
        self.module = self._module(self._told["module"])

    def run(self) -> Any:
        """What the module gives for arguments of the shapes and types that it was called with."""
        arguments = [self._value(each) for each in self._told["arguments"]]
        keywords = {name: self._value(each) for name, each in self._told["keywords"].items()}
        with torch.set_grad_enabled(bool(self._told["grad"])):
            return self.module(*arguments, **keywords)

    def _module(self, told: Json) -> nn.Module:
        owner = self._class(*told["class"])
        module: nn.Module = owner.__new__(owner)
        nn.Module.__init__(module)
        for name, each in told["children"].items():
            module.add_module(name, None if each is None else self._module(each))
        for name, number in told["parameters"].items():
            module._parameters[name] = None if number is None else self._tensors[number]
        for name, number in told["buffers"].items():
            module._buffers[name] = None if number is None else self._tensors[number]
        for name, each in told["attributes"].items():
            vars(module)[name] = self._value(each)
        module.training = bool(told["training"])
        return module

    def _class(self, module: str, name: str, file: str) -> Any:
        if module == "torch" or module.startswith("torch."):
            found: Any = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
        else:
            found = self._find_class(module, name, file)
        if not (isinstance(found, type) and issubclass(found, nn.Module)):
            raise TypeError(f"{name} is no module.")
        return found

    def _value(self, told: Any) -> Any:
        if not isinstance(told, dict):
            return told
        ((kind, held),) = told.items()
        if kind == "tensor":
            return None if held is None else self._tensors[held]
        if kind == "dtype":
            return _dtype(held)
        if kind == "device":
            return torch.device(held)
        if kind == "function":
            return _function(*held)
        if kind == "dict":
            return {name: self._value(each) for name, each in held.items()}
        made = [self._value(each) for each in held]
        return tuple(made) if kind == "tuple" else made


def _made(told: Json) -> torch.Tensor:
    """A tensor of zeros."""
    made = torch.empty_strided(
        told["shape"], told["stride"], dtype=_dtype(told["dtype"]), device=told["device"]
    )
    made.zero_()
    if told["parameter"]:
        return nn.Parameter(made, requires_grad=bool(told["grad"]))
    return made.requires_grad_() if told["grad"] else made


def _dtype(text: str) -> torch.dtype:
    found = getattr(torch, text.removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"There is no type {text}.")
    return found


def _function(namespace: str, name: str) -> Any:
    if namespace not in _NAMESPACES:
        raise ValueError(f"Functions of {namespace} are not called.")
    return getattr(importlib.import_module(namespace), name)

"""Tells Dynamo about the `neuron` device, when Dynamo is there anyway: importing it costs a second."""

from __future__ import annotations

import functools
from typing import Any

import torch


@functools.cache
def register_device_interface() -> None:
    """Register the interface once; nothing happens where the device is not loaded."""
    device_module = getattr(torch, "neuron", None)
    if device_module is None:
        return
    from torch._dynamo import device_interface

    if "neuron" in dict(device_interface.get_registered_device_interfaces()):
        return
    interface = _make_interface(device_interface.DeviceInterface, device_module)
    device_interface.register_interface_for_device("neuron", interface)
    for index in range(device_module.device_count()):
        device_interface.register_interface_for_device(f"neuron:{index}", interface)


def _make_interface(base: Any, module: Any) -> Any:
    """Dynamo's interface class, made of the functions of `torch.neuron`."""
    names = (
        "current_device", "set_device", "device_count", "is_available", "stream", "current_stream",
        "set_stream", "synchronize", "get_device_properties", "memory_allocated",
    )  # fmt: skip
    members: dict[str, Any] = {
        name: staticmethod(getattr(module, name)) for name in names if hasattr(module, name)
    }
    exchange = getattr(module, "_exchange_device", None) or module.set_device
    members.update(
        device=getattr(module, "device", None),
        Event=getattr(module, "Event", torch.Event),
        Stream=getattr(module, "Stream", torch.Stream),
        Worker=_make_worker(module),
        exchange_device=staticmethod(exchange),
        maybe_exchange_device=staticmethod(getattr(module, "_maybe_exchange_device", None) or exchange),
        get_raw_stream=staticmethod(lambda index: 0),
        get_compute_capability=staticmethod(lambda device=None: 0),
        is_bf16_supported=staticmethod(lambda including_emulation=False: True),
    )
    return type("NeuronInterface", (base,), members)


def _make_worker(module: Any) -> type:
    names = ("current_device", "set_device", "get_device_properties")
    members = {name: staticmethod(getattr(module, name)) for name in names if hasattr(module, name)}
    return type("Worker", (), members)

"""`torch_xla.experimental.pjrt`: the older place of `torch_xla.runtime`."""

from ..runtime import (  # noqa: TID252  # found as torch_xla
    addressable_device_count,
    device_type,
    global_device_count,
    global_ordinal,
    local_ordinal,
    local_process_count,
    process_count,
    process_index,
    using_pjrt,
    world_size,
)

__all__ = [
    "addressable_device_count", "device_type", "global_device_count", "global_ordinal", "local_ordinal",
    "local_process_count", "process_count", "process_index", "using_pjrt", "world_size",
]  # fmt: skip

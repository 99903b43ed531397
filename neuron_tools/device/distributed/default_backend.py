"""The back end that stands for a whole group: PyTorch takes gloo, and warns where the group has none."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


def let_be_default(backend: str) -> None:
    """Have groups ask a back end that some device of theirs has for what concerns the whole group.

    Args:
        backend: Its name.
    """
    from torch.distributed import distributed_c10d as c10d

    c10d._new_process_group_helper = with_default(c10d._new_process_group_helper, backend)


def with_default(make: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """PyTorch's function that makes a group, whose default back end is one that it has.

    Args:
        make: Gives the group, or a mark for ranks that have no part in it, and its store.
        backend: A back end that was registered by a name.
    """
    from torch.distributed import ProcessGroup

    @wraps(make)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        group, store = make(*arguments, **options)
        if isinstance(group, ProcessGroup) and backend in _names(group):
            group._set_default_backend(ProcessGroup.BackendType.CUSTOM)
        return group, store

    return wrapped


def _names(group: Any) -> set[str]:
    """Of a group's back ends."""
    return {group._get_backend(device).name() for device in group._device_types}

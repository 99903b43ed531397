"""Groups on gloo of a job of which not all ranks run: gloo would wait for the others."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

from neuron_tools.device.distributed import job


def stand_in(backend: str) -> None:
    """Let a back end make the groups that a program of such a job asks gloo for.

    Args:
        backend: Its name; it stands in for ranks that do not run.
    """
    now = job.current()
    if now is not None:
        from torch.distributed import distributed_c10d as c10d

        c10d._new_process_group_helper = standing_in(c10d._new_process_group_helper, now, backend)


def standing_in(make: Callable[..., Any], whole: job.Job, backend: str) -> Callable[..., Any]:
    """PyTorch's function that makes a group, with a back end in gloo's place where ranks do not run.

    The group goes by the name that was asked for: programs choose by it.

    Args:
        make: Takes `group_size`, `global_ranks_in_group` (none: all of the job) and `backend`, and gives the
            group, or a mark for ranks that have no part in it, and its store.
        whole: Of which this process is a rank.
        backend: The other back end's name.
    """
    from torch.distributed import distributed_c10d as c10d

    signature = inspect.signature(make)

    @functools.wraps(make)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        given = signature.bind(*arguments, **options)
        asked = given.arguments["backend"]
        ranks = given.arguments["global_ranks_in_group"] or range(given.arguments["group_size"])
        if len(whole.places(ranks)) < len(ranks):
            given.arguments["backend"] = c10d.Backend(_instead(str(asked), backend))
        group, store = make(*given.args, **given.kwargs)
        if group in c10d._world.pg_map:
            c10d._world.pg_map[group] = asked, store
            c10d._world.pg_backend_config[group] = str(c10d.BackendConfig(asked))
        return group, store

    return wrapped


def _instead(asked: str, backend: str) -> str:
    """What to ask for in place of gloo, which may be asked for alone or for some devices."""
    if asked == "gloo":
        return f"cpu:{backend},{backend}:{backend}"
    return re.sub(r"\bgloo\b", backend, asked)

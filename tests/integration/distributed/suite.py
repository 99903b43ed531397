"""Runs tests written for processes of their own in one set of processes: thousands of imports fewer."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
import unittest
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FOLDER = Path(tempfile.gettempdir()) / f"neuron-distributed-{os.getppid()}"
MEETING_S = 300

import torch.distributed as dist  # noqa: E402


def outcome_of(test: Callable[[], object]) -> str:
    """Run one test: "pass", "skip ..." or "fail ..."; what it changed of the process is put back."""
    variables = dict(os.environ)
    dist.set_debug_level(dist.DebugLevel.OFF)
    try:
        test()
        return "pass"
    except unittest.SkipTest as skip:
        return f"skip {skip}"
    except SystemExit as skip:
        return f"skip exit {skip.code}"
    except BaseException as error:
        if RANK == 0 or os.environ.get("VERBOSE"):
            traceback.print_exc()
        lines = str(error).splitlines() or [""]
        return f"fail {type(error).__name__}: {lines[0]}"
    finally:
        leave()
        os.environ.clear()
        os.environ.update(variables)


def leave() -> None:
    """End the test's groups, whatever state they are in."""
    try:
        if dist.is_initialized():
            dist.destroy_process_group()
    except Exception as error:
        print(f"rank {RANK}: leaving: {error}", file=sys.stderr)


def run_together(tests: Iterable[tuple[str, Callable[[dist.Store], object]]]) -> None:
    """Run tests on all ranks, one after the other; rank 0 prints one JSON line for each.

    Args:
        tests: Names, and what to run; it gets a store of its own.
    """
    launchers = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    store = dist.PrefixStore("suite", launchers)
    store.set_timeout(timedelta(seconds=MEETING_S))
    for name, test in tests:
        own = dist.PrefixStore(name, store)
        store.set(f"outcome/{name}/{RANK}", outcome_of(lambda test=test, own=own: test(own)))
        outcomes = [store.get(f"outcome/{name}/{rank}").decode() for rank in range(SIZE)]
        if RANK == 0:
            print(json.dumps({"test": name, "outcome": worst(outcomes)}), flush=True)


def worst(outcomes: list[str]) -> str:
    """The outcome of a test: a failure of any rank is one."""
    order: dict[str, int] = {"fail": 0, "pass": 1, "skip": 2}
    return min(outcomes, key=lambda outcome: order[outcome.split()[0]])

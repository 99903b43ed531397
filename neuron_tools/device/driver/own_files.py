"""The two files in which a process tells of itself: JSON where facts changed, a page of counts each time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuron_tools.device.driver.counts import Memory
from neuron_tools.device.driver.page import Page, PageWriter, page_path
from neuron_tools.device.driver.processes import PublishedProcess, write_process

# Publications after which the JSON file is replaced though nothing but counts changed.
FILE_INTERVAL = 120


class OwnFiles:
    """Writes the files of this process. Not to be shared by threads.

    Args:
        root: The tree's folder, in which the process may write.
        process: What is told; whoever publishes keeps its counts and memory current.
    """

    def __init__(self, root: Path, process: PublishedProcess) -> None:
        self._root = root
        self._process = process
        self._page = Page()
        self._writer: PageWriter | None = None
        self._told: tuple[object, ...] = ()
        self._models: Sequence[Mapping[str, Any]] = ()
        self._publications_left = 0

    def write(self, facts: Mapping[str, Any], models: Sequence[Mapping[str, Any]], elapsed_ns: int) -> None:
        """Tells the counts, and all that is known where something else changed.

        Args:
            facts: What the JSON file tells beside counts and models.
            models: The executables that ran most often, as the file has them.
            elapsed_ns: The process's simulated time.

        Raises:
            OSError: The tree is gone, or the disk is full.
        """
        told = (facts, self._process.cores.keys())
        if not self._publications_left or told != self._told or not _are_same(models, self._models):
            self._write_file(facts, models, elapsed_ns)
            self._told, self._publications_left = told, self._next_interval()
        self._models = models
        self._publications_left -= 1
        page = self._page
        page.published_at_ns, page.elapsed_ns = time.time_ns(), elapsed_ns
        page.is_timed, page.cores = bool(facts["timing"]), self._process.cores
        page.application_memory = self._process.host_memory.get("application_memory", Memory())
        if self._writer is None:
            self._writer = PageWriter(page_path(self._root, self._process.pid))
        self._writer.write(page)

    def close(self) -> None:
        """Closes what is open; the next `write` tells all anew."""
        self._publications_left = 0
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _next_interval(self) -> int:
        """Processes that started together do not go on replacing their files together."""
        return FILE_INTERVAL if self._page.revision > 2 else 1 + self._process.pid % FILE_INTERVAL

    def _write_file(
        self, facts: Mapping[str, Any], models: Sequence[Mapping[str, Any]], elapsed_ns: int
    ) -> None:
        self._page.revision += 1
        self._process.rest = {
            **facts,
            "revision": self._page.revision,
            "published_at": time.time(),
            "elapsed_ns": elapsed_ns,
            "models": models,
        }
        write_process(self._root, self._process)


def _are_same(models: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the executables are the same ones, however often they ran meanwhile."""
    return models is others or set(map(_identity, models)) == set(map(_identity, others))


def _identity(model: Mapping[str, Any]) -> tuple[Any, ...]:
    return model["uuid"], model["core"], model["is_running"]

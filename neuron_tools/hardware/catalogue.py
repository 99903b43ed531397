"""The catalogue: targets, chips and instances read from the data files, each figure with its source."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from importlib import resources
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.hardware.device import Chip, Device, Instance
from neuron_tools.hardware.errors import UnknownFigureError, UnknownTargetError
from neuron_tools.hardware.neuron_core import NeuronCore


@frozen
class Figure:
    """One figure with where it comes from.

    `also` are the values that other pages give for the same thing; `is_estimate` marks what nobody has
    published.
    """

    value: float
    source: str
    note: str = ""
    is_estimate: bool = False
    also: tuple[tuple[float, str], ...] = ()


def targets() -> tuple[str, ...]:
    """The generations a program can be timed on, e.g. "trn2"."""
    return tuple(_core_data()["targets"])


def get(target: str, *, lnc: int | None = None) -> NeuronCore:
    """The NeuronCore of a target ("trn2") or of an instance type ("trn2.48xlarge").

    Args:
        target: One of `targets()` or of `instances()`, or the compiler's name for early chips ("trn3pre").
        lnc: Physical cores per logical core (1 or 2); the target's default if None. It decides how much of
            the stack's HBM one core has.

    Raises:
        UnknownTargetError: No such target or instance, or an LNC it does not have.
    """
    instance = instances().get(target)
    key = instance.target if instance else _core_data()["aliases"].get(target, target)
    if key not in _core_data()["targets"]:
        raise UnknownTargetError(
            f"There is no target {target!r}; use one of {', '.join(targets())} or an instance type: "
            f"{', '.join(instances())}."
        )
    entry = _core_data()["targets"][key]
    core = NeuronCore(
        name=entry["core"],
        target=key,
        chip=entry["chip"],
        instance_type=instance.name if instance else entry["instance"],
        **{name: figure["value"] for name, figure in _figures(key).items()},
    )
    return core if lnc is None else _with_lnc(core, lnc)


def device(target: str, *, lnc: int | None = None) -> Device:
    """The whole machine of a target or instance type: core, chip and instance.

    Raises:
        UnknownTargetError: No such target or instance.
    """
    core = get(target, lnc=lnc)
    return Device(core=core, chip=chips()[core.chip], instance=instances()[core.instance_type])


def device_of(core: NeuronCore) -> Device:
    """The machine that a core, perhaps with changed figures, belongs to."""
    return Device(core=core, chip=chips()[core.chip], instance=instances()[core.instance_type])


@lru_cache(maxsize=1)
def chips() -> Mapping[str, Chip]:
    """All chips by name."""
    data = json.loads(data_text("chips.json"))
    return {
        name: Chip(name=name, **{key: figure["value"] for key, figure in figures.items()})
        for name, figures in data.items()
    }


@lru_cache(maxsize=1)
def instances() -> Mapping[str, Instance]:
    """All instance types by name."""
    return {
        row["instance"]: _instance(row) for row in csv.DictReader(data_text("instances.csv").splitlines())
    }


def figure(target: str, name: str) -> Figure:
    """A figure of a target's NeuronCore with its source.

    Raises:
        UnknownTargetError: No such target.
        UnknownFigureError: No such figure.
    """
    figures = _figures(get(target).target)
    if name not in figures:
        raise UnknownFigureError(f"A NeuronCore has no figure {name!r}; it has: {', '.join(figures)}.")
    entry = figures[name]
    return Figure(
        value=entry["value"],
        source=entry["source"],
        note=entry.get("note", ""),
        is_estimate=entry.get("estimate", False),
        also=tuple((other["value"], other["source"]) for other in entry.get("also", ())),
    )


def figure_names() -> tuple[str, ...]:
    """Names of the numeric figures of a NeuronCore."""
    described = {"name", "target", "chip", "instance_type"}
    return tuple(field.name for field in fields(NeuronCore) if field.name not in described)


def _with_lnc(core: NeuronCore, lnc: int) -> NeuronCore:
    if lnc not in (1, 2) or lnc > core.logical_core_size:
        choices = " or ".join(str(size) for size in range(1, core.logical_core_size + 1))
        raise UnknownTargetError(f"{core.target} has no LNC {lnc}; use {choices}.")
    share = core.hbm_bytes * lnc // core.logical_core_size
    return core.replace(logical_core_size=lnc, hbm_bytes=share)


def _figures(target: str) -> dict[str, Any]:
    entry = _core_data()["targets"][target]
    return {**_core_data()["cores"][entry["core"]], **entry.get("figures", {})}


def _instance(row: Mapping[str, str]) -> Instance:
    return Instance(
        name=row["instance"],
        target=row["target"],
        chip=row["chip"],
        chips=int(row["chips"]),
        vcpus=int(row["vcpus"] or 0),
        host_bytes=int(row["host_gib"] or 0) << 30,
        topology=row["topology"],
        chip_link=row["chip_link"],
        network_bits_per_second=float(row["network_gbps"] or 0) * 1e9,
        source=row["source"],
    )


@lru_cache(maxsize=1)
def _core_data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(data_text("neuron_cores.json"))
    return data


def data_text(name: str) -> str:
    """The text of a file of this package's data."""
    return (resources.files("neuron_tools.hardware") / "data" / name).read_text(encoding="utf-8")

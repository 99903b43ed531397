"""The Metadata row of a capture, and the source files it refers to."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuron_tools.capture.options import CaptureOptions
from neuron_tools.hardware import NeuronCore

MAX_SOURCE_BYTES = 1 << 20
NTFF_VERSION = 6  # the layout of raw traces that schema 7.4.0 profiles are made from


def metadata_row(
    core: NeuronCore, options: CaptureOptions, command: Sequence[str], end_ns: int | None
) -> dict[str, list[Any]]:
    """Profile and hardware constants, as schema 7.4.0 names them.

    Args:
        end_ns: Device time of the last execution's end, from the profile's start; None while it runs.
    """
    values = {
        "profile_schema_version": "7.4.0",
        "ntff_version": NTFF_VERSION,
        "num_physical_cores": options.lnc,
        "vnc_enabled": options.lnc > 1,
        "first_hw_timestamp": 0,
        "last_hw_timestamp": end_ns or 0,
        "first_ts": "1970-01-01T00:00:00Z",
        "last_ts": _timestamp(end_ns or 0),
        **hardware_constants(core),
        "ticks_per_nanosec": 1000,
        "profile_name": program_name(command),
        "is_simulation": True,
    }
    return {name: [value] for name, value in values.items()}


def program_name(command: Sequence[str]) -> str:
    """What a capture is called: the script's name, or the command's.

    Example:
        >>> program_name(["python", "examples/train.py"])
        'train'
    """
    scripts = [part for part in command if part.endswith(".py")]
    return Path((scripts or list(command) or ["profile"])[0]).stem


def hardware_constants(core: NeuronCore) -> dict[str, Any]:
    """Figures of the simulated core that analyses need."""
    return {
        "dma_ddr_bandwidth": core.dma_bandwidth,
        "num_dma_engines_per_neuroncore": core.dma_engines,
        "hbm_ddr_bandwidth": core.hbm_bandwidth,
        "tensor_engine_num_rows": core.tensor_rows,
        "tensor_engine_num_cols": core.tensor_columns,
        "tensor_engine_clock_freq": core.tensor_clock_ghz,
        "vector_engine_clock_freq": core.vector_clock_ghz,
        "vector_engine_num_channels": core.vector_lanes,
        "scalar_engine_clock_freq": core.scalar_clock_ghz,
        "scalar_engine_num_channels": core.scalar_lanes,
        "gpsimd_engine_clock_freq": core.gpsimd_clock_ghz,
        "gpsimd_engine_num_channels": core.gpsimd_lanes,
        "neuroncore_clock_freq": core.clock_ghz,
        "instance_type": core.instance_type,
    }


def source_file_rows(files: Iterable[str], typed: Mapping[str, str]) -> dict[str, list[Any]]:
    """SourceFile rows: hash and text of each source file that can still be read.

    Args:
        files: Their paths.
        typed: Text of each that is no file, such as a notebook's cell.
    """
    rows: dict[str, list[Any]] = {"path": [], "sha256": [], "text": []}
    for file in files:
        data = typed[file].encode() if file in typed else _read(Path(file))
        if data is not None:
            rows["path"].append(file)
            rows["sha256"].append(hashlib.sha256(data).hexdigest())
            rows["text"].append(data.decode("utf-8", "replace") if len(data) <= MAX_SOURCE_BYTES else None)
    return rows


def _timestamp(nanoseconds: int) -> str:
    """A time from the profile's start as the published profiles write it: from 1970, nine decimals."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{fraction:09d}Z"


def _read(path: Path) -> bytes | None:
    """A regular file's content: a pipe or terminal that a script was read from would never end."""
    try:
        return path.read_bytes() if path.is_file() else None
    except (OSError, ValueError):
        return None

"""A tiny profile with known sums, written by the real writer.

One NeuronCore, two executions. The first (100 ns) is one eager operation; the second (100 ns) a graph with
two operations that overlap on different engines. Device time is 200 ns:

    operation        module     line  pass      charged
    aten::addmm      /model/a     2   forward   100 ns   alone in its execution
    aten::mul        /model/a     3   forward    30 ns   20 alone, 20 shared with the next
    aten::mul        /model/b     3   backward   20 ns   10 shared, 10 alone
    (none)                                       50 ns   graph execution outside its operations
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from neuron_tools.profile.writer import ProfileWriter

SOURCE = "import torch\ny = layer(x)\nz = y * 2\n"
SOURCE_PATH = "/project/train.py"
METADATA = {
    "command": ["python", "train.py", "--name", "a b"],
    "target": "trn2",
    "lnc": 1,
    "host_clock": "fixed",
    "settings": [],
}
Tables = Mapping[str, Mapping[str, list[Any]]]


def _instructions() -> dict[str, list[Any]]:
    rows = [  # id, engine, opcode, start, end, framework operation
        (11, "Sync", "DMA_TRIGGER", 1000, 1002, 1),
        (12, "Tensor", "MATMUL", 1010, 1050, 1),
        (13, "Vector", "TENSOR_TENSOR", 1030, 1060, 1),
        (14, "Tensor", "MATMUL", 1210, 1250, 2),
        (15, "Scalar", "ACTIVATE", 1230, 1260, 3),
    ]
    columns = zip(*rows)
    ids, engines, opcodes, starts, ends, owners = map(list, columns)
    return {
        "id": ids,
        "engine": engines,
        "opcode": opcodes,
        "start_ts": starts,
        "end_ts": ends,
        "duration_ns": [end - start for start, end in zip(starts, ends)],
        "raw_framework_id": owners,
        "operands": [""] * len(rows),
        "pc": list(range(len(rows))),
        "bir_id": [""] * len(rows),
        "pcore_idx": [0] * len(rows),
        "process_idx": [0] * len(rows),
    }


def _framework() -> dict[str, list[Any]]:
    empty = [[], [], []]
    return {
        "id": [1, 2, 3],
        "raw_framework_id": [1, 2, 3],
        "framework_name": ["aten::addmm", "aten::mul", "aten::mul"],
        "layer": ["/model/a", "/model/a", "/model/b"],
        "is_backward": [False, False, True],
        "stack_frame_ids": ["1", "2", "2"],
        "start_ts": [1000, 1210, 1230],
        "end_ts": [1060, 1250, 1260],
        "pcore_idx": [0, 0, 0],
        "process_idx": [0, 0, 0],
        "time_intervals": ["[]"] * 3,
        "element_count_per_interval": empty,
        "transpose_element_count_per_interval": empty,
        "hbm_transfer_size_per_interval": empty,
        **{name: [0, 0, 0] for name in ("raw_bir_id", "raw_penguin_id", "raw_hlo_id", "hbm_read_bytes")},
        "hbm_write_bytes": [0, 0, 0],
    }


def _transfers() -> dict[str, list[Any]]:
    texts = ("op", "variable", "source", "dest", "semaphore_id", "read_sbuf_partitions", "read_shape")
    more = (
        "read_offset",
        "read_steps",
        "write_sbuf_partitions",
        "write_shape",
        "write_offset",
        "write_steps",
    )
    numbers = ("block_id", "queue_idx", "read_num_sbuf_partitions", "write_num_sbuf_partitions")
    return {
        "id": [21],
        "start_ts": [1000],
        "end_ts": [1020],
        "duration_ns": [20],
        "trigger": [11],
        "pcore_idx": [0],
        "process_idx": [0],
        "queue_name": ["qSyncInput0"],
        "throughput": [1e9],
        **{name: [2048] for name in ("read_bytes", "write_bytes", "transfer_bytes")},
        **{name: [""] for name in (*texts, *more)},
        **{name: [0] for name in numbers},
    }


def _events() -> dict[str, list[Any]]:
    rows = [
        ("nc_exec_running", 1000, 1100, "{}"),
        ("nc_exec_running", 1200, 1300, "{}"),
        ("dmem_buf_copyin", 900, 950, '{"bytes": 4096}'),
        ("dmem_buf_copyout", 1300, 1310, '{"bytes": 4}'),
    ]
    names, starts, ends, attributes = map(list, zip(*rows))
    return {
        "id": [1 << 47 | number for number in range(len(rows))],
        "name": names,
        "start_ts": starts,
        "end_ts": ends,
        "duration_ns": [end - start for start, end in zip(starts, ends)],
        "trace_event_source": ["neuron_hw"] * len(rows),
        "instance_id": ["simulated"] * len(rows),
        "process_id": [77] * len(rows),
        "thread_id": [0] * len(rows),
        "nc_idx": [0] * len(rows),
        "process_idx": [0] * len(rows),
        "extra_attributes_json": attributes,
    }


def _hbm_usage() -> dict[str, list[Any]]:
    from neuron_tools.profile.schema import TABLES

    byte_columns = [name for name in TABLES["SystemProfileHbmUsage"].column_names if name.endswith("_bytes")]
    return {
        **{name: [0, 0, 0] for name in byte_columns},
        "timestamp": [10, 20, 30],
        "total_bytes": [1000, 5000, 2000],
        "device_idx": [0, 0, 0],
        "hbm_idx": [0, 0, 0],
        "instance_id": ["simulated"] * 3,
        "process_idx": [0, 0, 0],
    }


TINY_TABLES: Tables = {
    "Instruction": _instructions(),
    "FrameworkInstruction": _framework(),
    "DmaPacketAggregated": _transfers(),
    "SystemProfileEvents": _events(),
    "SystemProfileHbmUsage": _hbm_usage(),
    "HostSpan": {
        "start_ts": [0, 400],
        "end_ts": [400, 500],
        "duration_ns": [400, 100],
        "process_idx": [0, 0],
        "thread_idx": [0, 0],
        "name": ["train", "synchronize"],
        "kind": ["range", "synchronize"],
    },
    "StackFrame": {"id": ["1", "2"], "file_location_id": [1, 2], "parent_frame_id": ["", "1"]},
    "StackFrameFileLocation": {
        "id": ["1", "2"],
        "file_name_id": [1, 1],
        "function_name_id": [1, 1],
        "line_number": [2, 3],
    },
    "StackFrameFileName": {"id": ["1"], "name": [SOURCE_PATH]},
    "StackFrameFunctionName": {"id": ["1"], "name": ["main"]},
    "SourceFile": {"path": [SOURCE_PATH], "sha256": ["00"], "text": [SOURCE]},
    "ProcessInfo": {
        "process_idx": [0],
        "process_id": [77],
        "command": ["python train.py"],
        "start_unix_ns": [0],
        "exit_status": [0],
    },
    "Warning": {
        "message": ["aten::foo runs on the host", "aten::foo runs on the host", "hot"],
        "category": ["compiler", "compiler", "thermal"],
    },
    "Summary": {
        "total_time": [250e-9],
        "model_flops": [2_000_000],
        "hardware_flops": [4_000_000],
        "mfu_estimated_percent": [0.25],
        "hfu_estimated_percent": [0.5],
        "mbu_estimated_percent": [0.125],
        "hbm_read_bytes": [2048],
        "hbm_write_bytes": [0],
        "tensor_engine_active_time_percent": [0.32],
        "dma_active_time_percent": [0.08],
    },
    "ActiveTime": {
        "engine": ["tensor", "tensor", "dma"],
        "start_ts": [1010, 1210, 1000],
        "end_ts": [1050, 1250, 1020],
        "duration_ns": [40, 40, 20],
        "pcore_idx": [0, 0, 0],
        "process_idx": [0, 0, 0],
    },
}

MakeProfile = Callable[..., Path]


@pytest.fixture
def make_profile(tmp_path: Path) -> MakeProfile:
    """Writes a profile: the tiny one, or with other tables, facts and ending."""

    def make(
        name: str = "tiny.nprof", tables: Tables | None = None, *, complete: bool = True, **facts: Any
    ) -> Path:
        directory = tmp_path / name
        writer = ProfileWriter(directory, METADATA)
        for table, columns in (TINY_TABLES if tables is None else tables).items():
            writer.append(table, dict(columns))
        writer.close(complete=complete, **facts)
        return directory

    return make


@pytest.fixture
def tiny_tables() -> Tables:
    """The columns of the tiny profile's tables."""
    return TINY_TABLES

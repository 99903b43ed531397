"""Tables of two tensors: a weight that two operations read, and an output that one writes."""

from tests.unit.neuron_explorer.timeline.small_profile import filled

TRANSFERS = {
    "variable": ["head.weight", "head.weight", "output.0"], "source": ["HBM", "HBM", "SBUF"],
    "dest": ["SBUF", "SBUF", "HBM"], "transfer_bytes": [64, 64, 32], "start_ts": [1010, 1210, 1250],
    "end_ts": [1020, 1230, 1260], "duration_ns": [10, 20, 10], "framework_name": ["aten::mm"] * 3,
    "layer": ["/model/a", "/model/b", "/model/b"], "source_file": ["train.py"] * 3, "source_line": [2, 3, 3],
}  # fmt: skip
INFO = {"variable_name": ["head.weight"], "type": ["weight"], "format": ["f32"], "shape": ["[4,4]"],
        "size": [64], "load_to_sbuf_repeat_factor": [2.0]}  # fmt: skip
NAMES = {"address": [1], "name": ["Model.head.weight"], "category": ["parameter"], "process_idx": [0]}
EVENTS = {"event_idx": [0, 1], "timestamp": [5, 2000], "kind": ["allocate", "free"], "address": [1, 1],
          "size": [64, 64], "process_idx": [0, 0]}  # fmt: skip


def with_tensors(tiny_tables):
    """Tables of a tiny profile with those of the tensors."""
    added = {"DmaPacketAggregated": TRANSFERS, "TensorInfo": INFO, "TensorName": NAMES, "MemoryEvent": EVENTS}
    return {**tiny_tables, **{name: filled(name, rows) for name, rows in added.items()}}

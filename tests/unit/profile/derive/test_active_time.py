from tests.unit.profile.builders import derived, dma, instruction

QUERY = """
    SELECT process_idx, pcore_idx, engine, start_ts, end_ts, duration_ns FROM ActiveTime
    ORDER BY process_idx, pcore_idx, engine, start_ts
"""


def test_overlapping_and_touching_spans_of_an_engine_are_one(tmp_path):
    tables = {
        "Instruction": [
            instruction("Tensor", 0, 10),
            instruction("Tensor", 5, 20),
            instruction("Tensor", 20, 30),
            instruction("Tensor", 40, 50),
            instruction("GpSimd", 7, 9),
        ]
    }
    assert derived(tmp_path / "p", tables, QUERY) == [
        (0, 0, "gpsimd", 7, 9, 2),
        (0, 0, "tensor", 0, 30, 30),
        (0, 0, "tensor", 40, 50, 10),
    ]


def test_cores_and_processes_are_apart(tmp_path):
    tables = {
        "Instruction": [
            instruction("Tensor", 0, 10),
            instruction("Tensor", 5, 12, pcore_idx=1),
            instruction("Tensor", 6, 15, process_idx=3),
        ]
    }
    assert derived(tmp_path / "p", tables, QUERY) == [
        (0, 0, "tensor", 0, 10, 10),
        (0, 1, "tensor", 5, 12, 7),
        (3, 0, "tensor", 6, 15, 9),
    ]


def test_transfers_and_collectives_have_engines_of_their_own(tmp_path):
    operation = {
        **{"start_ts": 3, "end_ts": 8, "duration_ns": 5, "operation": "AllReduce", "algorithm": "Ring"},
        **{"num_elements": 1, "dtype": "bf16", "op_id": 1, "stream_id": 0, "stream_index": 0},
        "trigger_engine": "GpSimd",
    }
    tables = {"DmaPacketAggregated": [dma(0, 4), dma(2, 9)], "CcOp": [operation]}
    assert derived(tmp_path / "p", tables, QUERY) == [(0, 0, "cc", 3, 8, 5), (0, 0, "dma", 0, 9, 9)]


def test_instructions_of_no_length_are_no_activity(tmp_path):
    assert derived(tmp_path / "p", {"Instruction": [instruction("Sync", 5, 5)]}, QUERY) == []


def test_a_profile_without_device_rows_has_no_active_time(tmp_path):
    assert derived(tmp_path / "p", {}, QUERY) == []

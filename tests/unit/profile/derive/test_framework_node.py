import json

from neuron_tools.profile.derive import framework_node
from tests.unit.profile.builders import derived, dma, instruction

TABLES = {
    "Instruction": [
        instruction("Tensor", 0, 40, layer="/m/a", raw_flops=4000, flops_transpose=1000, evt_wait_time_ns=7),
        instruction("Vector", 30, 60, layer="/m/a", is_backward=True),
        instruction("Tensor", 100, 120, layer="/m/b", raw_flops=2000),
        instruction("Sync", 200, 210, layer=None),
        instruction("Scalar", 300, 305, layer="/m"),
    ],
    "DmaPacketAggregated": [
        dma(60, 80, 512, layer="/m/a", op="weight"),
        dma(500, 510, 64, "SBUF", "HBM", layer="/m/b"),
    ],
}


def nodes(tmp_path, columns, tables=TABLES):
    return derived(tmp_path / "p", tables, f"SELECT {columns} FROM FrameworkNode ORDER BY id")


def test_the_tree_names_parents_and_children(tmp_path):
    assert nodes(tmp_path, "id, node_name, parent_name, parent_id, depth, children_names, children_ids") == [
        (0, "/", "", None, 0, '["/m"]', "[1]"),
        (1, "/m", "/", 0, 1, '["/m/a", "/m/b"]', "[2, 3]"),
        (2, "/m/a", "/m", 1, 2, "[]", "[]"),
        (3, "/m/b", "/m", 1, 2, "[]", "[]"),
    ]


def test_a_node_holds_the_time_of_all_under_it(tmp_path):
    columns = (
        "start_ts, end_ts, active_time_ns, self_time_ns, forward_time_ns, backward_time_ns, wait_time_ns"
    )
    assert nodes(tmp_path, columns) == [
        (0, 510, 125, 10, 75, 30, 7),
        (0, 510, 115, 5, 65, 30, 7),
        (0, 80, 80, 70, 40, 30, 7),
        (100, 510, 30, 20, 20, 0, 0),
    ]


def test_intervals_are_those_of_instructions_and_transfers(tmp_path):
    texts = [json.loads(text) for (text,) in nodes(tmp_path, "time_intervals")]
    assert texts == [
        [[0, 80], [100, 120], [200, 210], [300, 305], [500, 510]],
        [[0, 80], [100, 120], [300, 305], [500, 510]],
        [[0, 80]],
        [[100, 120], [500, 510]],
    ]


def test_work_and_bytes_add_up(tmp_path):
    columns = """
        instruction_count, tensor_engine_instruction_count, tensor_engine_time_ns, total_time_vector,
        raw_flops, hbm_read_bytes, hbm_write_bytes, sbuf_write_bytes, load_weight_bytes,
        dma_transfer_count, dma_time_ns
    """
    assert nodes(tmp_path, columns) == [
        (5, 2, 60, "30", 6000, 512, 64, 512, 512, 2, 30),
        (4, 2, 60, "30", 6000, 512, 64, 512, 512, 2, 30),
        (2, 1, 40, "30", 4000, 512, 0, 512, 512, 1, 20),
        (1, 1, 20, "0", 2000, 0, 64, 0, 0, 1, 10),
    ]


def test_rates_compare_with_the_peak_of_the_active_time(tmp_path):
    # 200 GFLOPS for 80 ns are 16,000 operations, of which 4,000 ran and 3,000 were no transposes.
    assert nodes(tmp_path, "hfu, mfu")[2] == (0.25, 0.1875)


def test_many_intervals_are_drawn_together_where_they_are_closest(tmp_path, monkeypatch):
    monkeypatch.setattr(framework_node, "MAX_INTERVALS", 2)
    texts = [json.loads(text) for (text,) in nodes(tmp_path, "time_intervals")]
    assert texts == [[[0, 305], [500, 510]], [[0, 305], [500, 510]], [[0, 80]], [[100, 120], [500, 510]]]
    assert nodes(tmp_path / "again", "active_time_ns")[0] == (125,)


def test_a_profile_without_device_rows_has_a_bare_root(tmp_path):
    assert nodes(tmp_path, "node_name, start_ts, end_ts, instruction_count", {}) == [("/", 0, 0, 0)]

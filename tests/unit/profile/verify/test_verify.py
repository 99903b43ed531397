"""Each rule: a sound profile passes, and the breach that is planted is the one that is found."""

import copy

import pytest

from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.store.layout import part_files
from neuron_tools.profile.verify import MAX_PER_RULE, verify
from neuron_tools.profile.writer import ProfileWriter
from tests.unit.profile.builders import METADATA_ROW, instruction, sound_tables, write_profile


def found_in(directory):
    with open_profile(directory) as profile:
        return [(breach.table, breach.what) for breach in verify(profile)]


def after(tmp_path, change):
    """Breaches of the sound profile after a change of its recorded tables."""
    tables = copy.deepcopy(sound_tables())
    change(tables)
    return found_in(write_profile(tmp_path / "p", tables))


def after_replacing(tmp_path, table, query):
    """Breaches of the sound profile after a derived table is replaced by a query's result."""
    directory = write_profile(tmp_path / "p", sound_tables())
    with open_profile(directory) as profile:
        rows = profile.query(query)
    writer = ProfileWriter.join(directory, 0)
    writer.replace(table, rows)
    writer.close(complete=True)
    return found_in(directory)


def put(table, row, **values):
    return lambda tables: tables[table][row].update(values)


def test_a_sound_profile_has_no_breach(tmp_path):
    assert found_in(write_profile(tmp_path / "p", sound_tables())) == []


def test_an_empty_profile_has_no_breach(tmp_path):
    assert found_in(write_profile(tmp_path / "p", {})) == []


def test_an_incomplete_profile_is_no_breach(tmp_path):
    assert found_in(write_profile(tmp_path / "p", sound_tables(), complete=False)) == []


@pytest.mark.parametrize(
    ("change", "breach"),
    [
        (put("Instruction", 1, duration_ns=39), ("Instruction", "duration_ns is end_ts - start_ts")),
        (put("Instruction", 0, hbm_read_bytes=None, dma_wait_time_ns=-1),
         ("Instruction", "dma_wait_time_ns is not negative")),
        (put("DmaPacketAggregated", 0, throughput=float("inf")),
         ("DmaPacketAggregated", "throughput is a finite number")),
        (put("DmaPacketAggregated", 0, throughput=float("nan")),
         ("DmaPacketAggregated", "throughput is a finite number")),
        (put("DmaPacketAggregated", 0, write_bytes=63),
         ("DmaPacketAggregated", "bytes written are the bytes read")),
        (put("DmaPacketAggregated", 0, queue_type="fast"),
         ("DmaPacketAggregated", "queue_type is one of its enumeration")),
        (put("Instruction", 2, end_ts=135, duration_ns=30),
         ("Instruction", "lies within its HloInstruction")),
        (put("Instruction", 2, raw_hlo_id=9), ("Instruction", "raw_hlo_id resolves")),
        (put("HloInstruction", 0, end_ts=131),
         ("HloInstruction", "lies within its FrameworkInstruction")),
        (put("HloInstruction", 0, raw_framework_id=5), ("HloInstruction", "raw_framework_id resolves")),
        (put("ExecutionInfo", 0, execution_end_ts=129),
         ("FrameworkInstruction", "lies within its execution")),
        (put("ExecutionInfo", 0, execution_start_ts=1),
         ("FrameworkInstruction", "lies within its execution")),
        (put("Flow", 0, in_id=11), ("Flow", "in_id exists")),
        (put("Flow", 0, out_table="Instructions"), ("Flow", "out_table is a table with ids")),
        (put("Instruction", 1, wait_cause_id=77), ("Instruction", "wait_cause_id exists")),
        (put("Instruction", 1, stack_frame_ids="[1, 3]"), ("Instruction", "stack_frame_ids resolve")),
        (put("FrameworkInstruction", 0, stack_frame_ids="9"),
         ("FrameworkInstruction", "stack_frame_ids resolve")),
        (put("StackFrame", 1, parent_frame_id="8"), ("StackFrame", "parent_frame_id resolves")),
        (put("StackFrame", 0, file_location_id=8), ("StackFrame", "file_location_id resolves")),
        (put("StackFrameFileLocation", 0, file_name_id=8),
         ("StackFrameFileLocation", "file_name_id resolves")),
        (put("StackFrameFileLocation", 0, function_name_id=8),
         ("StackFrameFileLocation", "function_name_id resolves")),
    ],
)  # fmt: skip
def test_a_planted_breach_is_found(tmp_path, change, breach):
    assert after(tmp_path, change) == [breach]


@pytest.mark.parametrize(
    ("change", "breach"),
    [
        (put("Instruction", 2, start_ts=135, duration_ns=-5), ("Instruction", "ends after it starts")),
        (put("Instruction", 0, start_ts=-2, duration_ns=7), ("Instruction", "start_ts is not negative")),
    ],
)
def test_a_breach_that_spoils_the_derived_tables_is_found_too(tmp_path, change, breach):
    assert breach in after(tmp_path, change)


def test_an_id_that_is_used_twice_is_found(tmp_path):
    def double(tables):
        tables["Instruction"].append({**tables["Instruction"][2], "wait_cause_id": None})

    assert after(tmp_path, double) == [("Instruction", "id is unique")]


def test_an_engine_that_runs_out_of_order_is_found(tmp_path):
    def swap(tables):
        tables["Instruction"].append(instruction("Tensor", 10, 20, id=4))

    breach = ("Instruction", "starts no earlier than the instruction before it on its engine")
    assert after(tmp_path, swap) == [breach]


def test_captures_of_hardware_number_instructions_as_they_like(tmp_path):
    def swap(tables):
        tables["Instruction"].append(instruction("Tensor", 10, 20, id=4))
        tables["Metadata"] = [{**METADATA_ROW, "is_simulation": False}]

    assert after(tmp_path, swap) == []


def replaced(table, replacement):
    return f"SELECT * REPLACE ({replacement}) FROM {table}"


@pytest.mark.parametrize(
    ("table", "query", "breach"),
    [
        (
            "Summary",
            replaced("Summary", "tensor_engine_instruction_count + 1 AS tensor_engine_instruction_count"),
            ("Summary", "tensor_engine_instruction_count is the sum of the rows"),
        ),
        (
            "Summary",
            replaced("Summary", "2 * scalar_engine_instruction_time AS scalar_engine_instruction_time"),
            ("Summary", "scalar_engine_instruction_time is the sum of the rows"),
        ),
        (
            "Summary",
            replaced("Summary", "1.5 AS hfu_estimated_percent"),
            ("Summary", "hfu_estimated_percent is a fraction"),
        ),
        (
            "Summary",
            replaced("Summary", "2 * total_time AS dma_active_time"),
            ("Summary", "dma_active_time fits into total_time"),
        ),
        (
            "OpcodeSummary",
            replaced("OpcodeSummary", "instruction_time_ns + 1 AS instruction_time_ns"),
            ("OpcodeSummary", "count and time are those of the instructions"),
        ),
        (
            "ActiveTime",
            "SELECT * FROM ActiveTime WHERE engine <> 'scalar'",
            ("ActiveTime", "adds up to the union of the engine's spans"),
        ),
        (
            "SchemaFields",
            "SELECT * FROM SchemaFields WHERE NOT (table_name = 'Flow' AND field_name = 'in_id')",
            ("SchemaFields", "describes every column"),
        ),
        (
            "SchemaFields",
            replaced("SchemaFields", "if(field_name = 'in_id', 'string', field_type) AS field_type"),
            ("SchemaFields", "gives the column's type"),
        ),
        (
            "FrameworkNode",
            replaced("FrameworkNode", "if(depth = 2, end_ts + 1, end_ts) AS end_ts"),
            ("FrameworkNode", "lies within its parent node"),
        ),
    ],
)
def test_a_derived_table_that_disagrees_is_found(tmp_path, table, query, breach):
    assert breach in after_replacing(tmp_path, table, query)


def test_active_intervals_that_overlap_are_found(tmp_path):
    query = "SELECT * FROM ActiveTime UNION ALL SELECT * FROM ActiveTime WHERE engine = 'tensor'"
    assert ("ActiveTime", "begins after the interval before it has ended") in after_replacing(
        tmp_path, "ActiveTime", query
    )


def test_a_damaged_part_is_found(tmp_path):
    directory = write_profile(tmp_path / "p", sound_tables())
    part = part_files(directory, "ExecutionInfo")[0]
    part.write_bytes(b"PAR1")
    assert found_in(directory) == [("ExecutionInfo", "every part is whole")]


def test_a_breach_says_which_row_what_was_expected_and_what_was_found(tmp_path):
    tables = sound_tables()
    tables["DmaPacketAggregated"][0]["write_bytes"] = 63
    with open_profile(write_profile(tmp_path / "p", tables)) as profile:
        breach = verify(profile)[0]
    assert (breach.row_id, breach.expected, breach.found) == ("10", "64", "63")


def test_a_rule_that_is_broken_everywhere_is_told_often_enough(tmp_path):
    rows = [instruction("Tensor", n, n + 1, duration_ns=2) for n in range(MAX_PER_RULE + 50)]
    found = found_in(write_profile(tmp_path / "p", {"Instruction": rows}))
    assert found.count(("Instruction", "duration_ns is end_ts - start_ts")) == MAX_PER_RULE

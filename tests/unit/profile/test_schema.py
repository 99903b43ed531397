import pyarrow as pa
import pytest

from neuron_tools.profile.schema import ENUMS, TABLES, UnknownTableError, arrow_schema, table_schema


def test_published_tables_come_first_and_ours_are_marked():
    assert next(iter(TABLES)) == "ActiveTime"
    assert [name for name, table in TABLES.items() if table.is_extension] == [
        "Executable",
        "ProcessInfo",
        "HostSpan",
        "HostSample",
        "TraceTrack",
        "TraceSpan",
        "TraceCounter",
        "Device",
        "Compilation",
        "SourceFile",
        "FrameworkShare",
        "Transformation",
        "KernelLaunch",
        "ModuleCall",
        "MemoryEvent",
        "TensorName",
        "MfuUsage",
    ]


def test_added_columns_follow_the_published_ones():
    instruction = TABLES["Instruction"]
    first_added = next(i for i, field in enumerate(instruction.fields) if field.is_extension)
    assert all(field.is_extension for field in instruction.fields[first_added:])
    assert {"process_idx", "source_file", "source_line", "wait_cause_id"} <= set(instruction.column_names)


def test_no_table_has_a_column_twice():
    for table in TABLES.values():
        assert len(set(table.column_names)) == len(table.column_names), table.name


def test_every_time_table_knows_its_process():
    timed = [t for t in TABLES.values() if {"start_ts", "timestamp"} & set(t.column_names)]
    assert [t.name for t in timed if "process_idx" not in t.column_names] == ["FrameworkNode"]


def test_every_enumeration_that_a_column_names_exists():
    named = {field.enum for table in TABLES.values() for field in table.fields if field.enum}
    assert named <= set(ENUMS)


def test_every_table_and_column_is_described():
    undescribed = [
        f"{table.name}.{field.name}"
        for table in TABLES.values()
        for field in table.fields
        if not field.description
    ]
    assert undescribed == []
    assert all(table.description for table in TABLES.values())


def test_repeating_texts_are_dictionaries_and_distinct_ones_are_not():
    assert pa.types.is_dictionary(arrow_schema("Instruction").field("opcode").type)
    assert arrow_schema("HloInstruction").field("time_intervals").type == pa.string()
    assert arrow_schema("StackFrame").field("id").type == pa.string()


def test_rows_are_ordered_by_track_before_time():
    assert TABLES["Instruction"].sort_key == ("process_idx", "pcore_idx", "engine", "start_ts", "id")
    assert TABLES["TensorInfo"].sort_key == ()


def test_an_unknown_table_names_its_nearest():
    with pytest.raises(UnknownTableError, match="Did you mean 'Instruction'"):
        table_schema("Instructions")

from neuron_tools.profile.schema import TABLES
from tests.unit.profile.builders import derived, instruction

TABLE = {"Instruction": [instruction("Tensor", 0, 10)]}


def test_every_column_of_every_table_with_rows_is_described(tmp_path):
    rows = derived(tmp_path / "p", TABLE, "SELECT table_name, list(field_name) FROM SchemaFields GROUP BY 1")
    described = {name: tuple(fields) for name, fields in rows}
    assert sorted(described) == [
        "ActiveTime", "FrameworkNode", "Instruction", "Metadata", "OpcodeSummary", "SchemaFields", "Summary",
    ]  # fmt: skip
    assert set(described["Instruction"]) == set(TABLES["Instruction"].column_names)


def test_units_ranges_and_values_are_told(tmp_path):
    query = """
        SELECT field_type, field_required, field_unit, field_minimum, field_maximum, field_enum_values
        FROM SchemaFields WHERE table_name = 'Instruction' AND field_name = '{}'
    """
    assert derived(tmp_path / "1", TABLE, query.format("start_ts")) == [
        ("int64", True, "nanoseconds", 0.0, None, None)
    ]
    assert derived(tmp_path / "2", TABLE, query.format("performance_mode")) == [
        ("string", False, None, None, None, "2x,4x")
    ]

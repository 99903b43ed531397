from tests.unit.profile.builders import derived, instruction


def test_time_and_activity_by_engine_and_opcode(tmp_path):
    tables = {
        "Instruction": [
            instruction("Tensor", 0, 60, "MATMUL"),
            instruction("Tensor", 50, 90, "MATMUL"),
            instruction("Tensor", 90, 95, "LDWEIGHTS"),
            instruction("Vector", 0, 100, "MATMUL"),
        ]
    }
    rows = derived(
        tmp_path / "p",
        tables,
        """
        SELECT engine, opcode, instruction_count, instruction_time_ns, active_time_ns, active_time_percent
        FROM OpcodeSummary
        """,
    )
    assert rows == [
        ("Tensor", "MATMUL", 2, 100, 90, 0.9),
        ("Vector", "MATMUL", 1, 100, 100, 1.0),
        ("Tensor", "LDWEIGHTS", 1, 5, 5, 0.05),
    ]

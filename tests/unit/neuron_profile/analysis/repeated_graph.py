"""A graph that runs three times, made of the tiny profile."""


def repeated_graph(tables, kind="graph"):
    """The tiny profile's second execution alone, three times, a microsecond apart."""
    found = {}
    for name, rows in tables.items():
        times = [column for column in ("start_ts", "end_ts") if column in rows]
        if not times or name not in ("Instruction", "FrameworkInstruction", "SystemProfileEvents"):
            continue
        kept = [row for row, start in enumerate(rows["start_ts"]) if 1200 <= start < 1300]
        found[name] = {
            column: [
                values[row]
                + 1000 * number * (column in times)
                + 100 * number * (column in ("id", "raw_framework_id"))
                for number in range(3)
                for row in kept
            ]
            if column in (*times, "id", "raw_framework_id")
            else [values[row] for _ in range(3) for row in kept]
            for column, values in rows.items()
        }
    starts = [1200, 2200, 3200]
    found["ExecutionInfo"] = {
        "execution_index": [0, 1, 2], "executable_idx": [1] * 3, "process_idx": [0] * 3, "pcore_idx": [0] * 3,
        "execution_start_ts": starts, "execution_end_ts": [start + 100 for start in starts],
        "neff_name": ["g"] * 3, "num_subgraphs": [1] * 3, "row_count": [0] * 3,
    }  # fmt: skip
    found["Executable"] = {
        "executable_idx": [1], "process_idx": [0], "name": ["g"], "kind": [kind], "instruction_count": [2],
        "duration_ns": [100], "hlo_operation_count": [2], "execution_count": [3],
    }  # fmt: skip
    return {name: rows for name, rows in tables.items() if name != "DmaPacketAggregated"} | found

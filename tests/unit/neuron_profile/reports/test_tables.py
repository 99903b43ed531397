import io

from rich.console import Console

from neuron_profile.reports.tables import data_table


def printed(columns: list[str], rows: list[list[str]], right: range, width: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(data_table(columns, rows, right=right))
    return file.getvalue().splitlines()


def test_numbers_stay_whole_where_texts_are_broken():
    lines = printed(["Layout", "Step"], [["dp 128, tp 8, pp 4", "1,234,567 ns"]], range(1, 2), 24)
    assert sum("1,234,567 ns" in line for line in lines) == 1
    assert not any("dp 128, tp 8, pp 4" in line for line in lines)


def test_many_columns_stand_close_below_headings_of_several_lines():
    headings = ["Layout", *["Core hours"] * 11]
    lines = printed(headings, [["dp 8", *["1,024"] * 11]], range(1, 12), 100)
    assert lines[0].split() == ["Core"] * 11
    assert lines[-1].split() == ["dp", "8", *["1,024"] * 11]
    assert max(len(line.rstrip()) for line in lines if "1,024" in line) < 100

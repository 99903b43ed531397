import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

SUM = "SELECT engine, sum(duration_ns) AS ns FROM Instruction GROUP BY engine ORDER BY engine"
ROWS = [("Scalar", 30), ("Sync", 2), ("Tensor", 80), ("Vector", 30)]


def test_a_table_by_default(make_profile, command) -> None:
    answer = command("query", make_profile(), SUM)
    assert answer.status == 0
    assert [line.split() for line in answer.out.splitlines()] == [
        ["engine", "ns"],
        ["─" * 11],
        *([name, str(ns)] for name, ns in ROWS),
    ]


def test_json(make_profile, command) -> None:
    answer = command("query", make_profile(), SUM, "--format", "json")
    assert json.loads(answer.out) == [{"engine": name, "ns": ns} for name, ns in ROWS]


def test_csv_keeps_null_apart_and_quotes(make_profile, command) -> None:
    answer = command("query", make_profile(), "SELECT 'a,b' AS x, NULL AS y, 1.5 AS z", "--format", "csv")
    assert answer.out == 'x,y,z\n"a,b",,1.5\n'


def test_parquet_to_a_file(make_profile, command, tmp_path: Path) -> None:
    target = tmp_path / "sums.parquet"
    assert command("query", make_profile(), SUM, "--format", "parquet", "--output-file", target).status == 0
    assert [tuple(row.values()) for row in pq.read_table(target).to_pylist()] == ROWS


def test_columns_of_one_name_are_both_kept(make_profile, command) -> None:
    answer = command("query", make_profile(), "SELECT 1 AS a, 2 AS a", "--format", "json")
    assert list(json.loads(answer.out)[0].values()) == [1, 2]


def test_sql_from_standard_input(make_profile, command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 42 AS answer"))
    assert json.loads(command("query", make_profile(), "-", "--format", "json").out) == [{"answer": 42}]


def test_cells_are_text_and_never_markup(make_profile, command) -> None:
    assert (
        "[bold]x[/bold] :smile:"
        in command("query", make_profile(), "SELECT '[bold]x[/bold] :smile:' AS a").out
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT engin FROM Instruction", 'Error: Binder Error: Referenced column "engin" not found'),
        ("SELEC 1", "Error: Parser Error"),
        ("DROP TABLE Instruction", "Error: A profile is read-only"),
        ("COPY Instruction TO '/tmp/x.csv'", "Error: A profile is read-only"),
        ("SELECT * FROM read_csv('/etc/passwd')", "Error: A query reads the profile's tables only"),
        ("", "Error: The query is empty."),
    ],
)
def test_wrong_sql_is_one_line(make_profile, command, sql: str, message: str) -> None:
    answer = command("query", make_profile(), sql)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.startswith(message)
    assert answer.err.count("\n") == 1


def test_an_output_file_that_exists_is_kept(make_profile, command, tmp_path: Path) -> None:
    target = tmp_path / "kept.json"
    target.write_text("precious")
    answer = command("query", make_profile(), SUM, "--format", "json", "--output-file", target)
    assert (answer.status, target.read_text()) == (2, "precious")
    assert "exists" in answer.err
    forced = command(
        "query", tmp_path / "tiny.nprof", SUM, "--format", "json", "--output-file", target, "--force"
    )
    assert forced.status == 0
    assert len(json.loads(target.read_text())) == 4


def test_what_a_damaged_profile_lacks_is_told(make_profile, command) -> None:
    profile = Path(make_profile())
    part = next((profile / "Instruction").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    answer = command("query", profile, "SELECT count(*) AS n FROM Instruction", "--format", "csv")
    assert (answer.status, answer.out) == (0, "n\n0\n")
    assert answer.err.startswith("Warning: Instruction: the part ")


def test_time_and_memory_can_be_limited(make_profile, command) -> None:
    profile = make_profile()
    slow = "SELECT sum(a.i * b.i) FROM range(1000000) a(i), range(1000000) b(i)"
    answer = command("query", profile, slow, "--timeout", "0.05")
    assert (answer.status, "longer than 0.05 s" in answer.err) == (1, True)
    large = "SELECT list(i::VARCHAR || repeat('x', 1000)) FROM range(1000000) t(i)"
    answer = command("query", profile, large, "--memory-limit", "64MiB")
    assert (answer.status, "more memory than its limit" in answer.err) == (1, True)

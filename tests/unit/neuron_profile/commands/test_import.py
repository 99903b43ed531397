"""`import`, `merge`, `slice`, `show-schema` and the CSV export, as a user calls them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.schema import TABLES
from tests.fixtures.foreign_traces import all_traces, device_profile, kineto_document
from tests.fixtures.gpu_trace import gpu_document


@pytest.fixture
def trace(tmp_path):
    """A file with the given content."""

    def make(content, name="trace.json"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return make


@pytest.mark.parametrize("name", all_traces())
def test_each_format_is_recognised_by_its_content(name, trace, command, tmp_path):
    answer = command("import", trace(all_traces()[name], "any.thing"), "-o", tmp_path / "out.nprof")

    assert answer.status == 0, answer.err
    assert f"from {name.partition(' (')[0]}:" in answer.err


def test_an_address_is_refused_in_words(command):
    answer = command("import", "https://example.com/trace.json")
    assert answer.status == 2
    assert "https://example.com/trace.json is an address: download the trace" in answer.err


def test_the_profile_is_named_after_the_first_file(trace, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = json.loads(command("import", trace(kineto_document(), "run.pt.trace.json"), "--json").out)

    assert report["path"] == "run.nprof"
    assert report["rows"]["TraceSpan"] == 31
    assert (tmp_path / "run.nprof" / "profile.json").exists()


def test_what_is_no_trace_is_one_line_and_status_1(trace, command, tmp_path):
    answer = command("import", trace(b"hello"), "-o", tmp_path / "out.nprof")

    assert (answer.status, answer.out) == (1, "")
    assert answer.err.count("\n") == 1
    assert "in no known format. Known are: AWS Neuron profile JSON, torch.profiler" in answer.err


def test_merged_profiles_are_one_job(trace, command, tmp_path):
    for rank in (0, 1):
        command("import", trace(kineto_document(rank)), "-o", tmp_path / f"{rank}.nprof")
    answer = command("merge", tmp_path / "0.nprof", tmp_path / "1.nprof", "-o", tmp_path / "job.nprof")

    assert answer.status == 0, answer.err
    with open_profile(tmp_path / "job.nprof") as profile:
        ranks = profile.query("SELECT rank FROM ProcessInfo ORDER BY rank").to_pylist()
    assert [row["rank"] for row in ranks] == [0, 1]
    assert command("merge", tmp_path / "0.nprof", "-o", tmp_path / "x.nprof").status == 2


def test_a_slice_is_a_profile_of_what_happened_then(trace, command, tmp_path):
    command("import", trace(device_profile()), "-o", tmp_path / "whole.nprof")
    answer = command(
        "slice", tmp_path / "whole.nprof", "--start", "0.12us", "--end", "300", "-o", tmp_path / "part.nprof"
    )

    assert answer.status == 0, answer.err
    with open_profile(tmp_path / "part.nprof") as profile:
        rows = profile.query("SELECT start_ts, end_ts FROM Instruction ORDER BY 1").to_pylist()
        edges = profile.query("SELECT count(*) AS n FROM Flow").to_pylist()
    # Of 84..154, 184..254 and 284..354 ns, from 120 ns on and up to 300 ns.
    assert [(row["start_ts"], row["end_ts"]) for row in rows] == [(0, 34), (64, 134), (164, 180)]
    assert edges == [{"n": 2}]
    assert command("verify", tmp_path / "part.nprof").status == 0


@pytest.mark.parametrize(
    ("start", "end", "status"), [("5x", "9", 2), ("9", "5", 2), ("1s", "2s", 2), ("0", "99999999999999s", 2)]
)
def test_a_stretch_without_anything_in_it_is_refused(trace, command, tmp_path, start, end, status):
    command("import", trace(device_profile()), "-o", tmp_path / "whole.nprof")
    answer = command(
        "slice", tmp_path / "whole.nprof", "--start", start, "--end", end, "-o", tmp_path / "p.nprof"
    )

    assert answer.status == status
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "p.nprof").exists()


def test_the_schema_is_printed_as_text_json_and_openapi(command):
    text = command("show-schema", "Flow").out
    described = json.loads(command("show-schema", "--format", "json").out)["tables"]
    openapi = command("show-schema", "--format", "openapi").out

    assert text.startswith("Flow: ")
    assert "in_id" in text
    assert list(described) == list(TABLES)
    assert openapi.startswith("openapi: 3.0.3\n")
    assert all(f"\n    {name}:\n" in openapi for name in TABLES)


def test_every_table_is_a_csv_file(trace, command, tmp_path):
    command("import", trace(kineto_document()), "-o", tmp_path / "out.nprof")
    command("view", tmp_path / "out.nprof", "--output-format", "csv", "--output-file", tmp_path / "csv")

    with (tmp_path / "csv" / "TraceSpan.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 31
    assert {"aten::mm", "cudaLaunchKernel"} <= {row["name"] for row in rows}


def test_spans_without_their_arguments(trace, command, tmp_path):
    path = trace(kineto_document())
    columns = "id, name, category, start_ts, end_ts, correlation_id"
    found = []
    for name, options in (("with", []), ("without", ["--no-arguments"])):
        assert command("import", path, "-o", tmp_path / f"{name}.nprof", *options).status == 0
        with open_profile(tmp_path / f"{name}.nprof") as profile:
            kept = profile.query("SELECT count(arguments_json) AS n FROM TraceSpan").to_pylist()[0]["n"]
            found.append((kept, profile.query(f"SELECT {columns} FROM TraceSpan ORDER BY id").to_pylist()))
    (kept, spans), (none, same) = found
    assert kept > 0 == none
    assert spans == same


def test_an_engine_makes_a_profile_of_each_trace(tmp_path, command):
    for number in range(2):
        (tmp_path / f"rank{number}.json").write_text(json.dumps(gpu_document(rank=number)))
    traces = [tmp_path / f"rank{number}.json" for number in range(2)]
    answer = command("import", *traces, "-o", tmp_path / "job", "--engine", "processes", "--json")
    assert answer.status == 0
    made = [Path(json.loads(line)["path"]) for line in answer.out.splitlines()]
    assert made == [tmp_path / "job" / f"rank{number}.nprof" for number in range(2)]
    assert [len(json.loads(command("ranks", path, "--json").out)["result"]["ranks"]) for path in made] == [
        1,
        1,
    ]
    assert command("import", *traces, "-o", tmp_path / "job", "--engine", "processes").status == 2

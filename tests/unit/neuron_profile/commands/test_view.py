import json
from pathlib import Path

import pytest


def test_the_summary_goes_to_standard_output(make_profile, command) -> None:
    answer = command("view", make_profile(), "--output-format", "summary-text")
    assert answer.status == 0
    assert "Device time  200 ns in 2 executions" in answer.out
    assert answer.err == ""


def test_the_summary_of_two_profiles_is_side_by_side(make_profile, command) -> None:
    answer = command(
        "view", make_profile("a.nprof"), make_profile("b.nprof"), "--output-format", "summary-text"
    )
    assert ["a.nprof", "b.nprof"] in [line.split() for line in answer.out.splitlines()]


def test_summary_json_has_the_published_metrics_of_each_profile(make_profile, command) -> None:
    profiles = make_profile("a.nprof"), make_profile("b.nprof")
    metrics = json.loads(command("view", *profiles, "--output-format", "summary-json").out)
    assert list(metrics) == ["a", "b"]
    assert metrics["a"]["model_flops"] == 2_000_000


@pytest.mark.parametrize(
    ("output_format", "name"),
    [
        ("perfetto", "tiny.pftrace"),
        ("chrome", "tiny.trace.json"),
        ("json", "tiny.json"),
        ("parquet", "tiny-parquet"),
    ],
)
def test_exports_have_a_name_by_default_and_never_overwrite(
    make_profile, command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output_format: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    profile = make_profile()
    answer = command("view", profile, "--output-format", output_format)
    assert answer.status == 0, answer.err
    assert (answer.out, answer.err.startswith(f"Wrote {name}: ")) == ("", True)
    assert (tmp_path / name).exists()
    again = command("view", profile, "--output-format", output_format)
    assert again.status == 2
    assert "exists" in again.err


def test_an_export_takes_one_profile(make_profile, command) -> None:
    profiles = make_profile("a.nprof"), make_profile("b.nprof")
    answer = command("view", *profiles, "--output-format", "perfetto")
    assert answer.status == 2
    assert answer.err.startswith("Error: ")
    assert answer.err.count("\n") == 1


def test_the_explorer_takes_several_profiles(make_profile, command, monkeypatch: pytest.MonkeyPatch) -> None:
    served = []
    monkeypatch.setattr("neuron_explorer.server.serve", lambda *given, **options: served.append(given))
    profiles = make_profile("a.nprof"), make_profile("b.nprof")
    assert command("view", *profiles, "-p", "0", "--no-browser").status == 0
    [(opened, place)] = served
    assert opened == tuple(map(str, profiles))
    assert (place.address, place.port) == ("127.0.0.1", 0)


def test_wrong_usage_is_one_line(command) -> None:
    for arguments in (("view",), ("view", "x", "--output-format", "pdf"), ("view", "x", "-p", "99999999")):
        answer = command(*arguments)
        assert answer.status == 2
        assert answer.err.startswith("Error: ")
        assert answer.err.count("\n") == 1

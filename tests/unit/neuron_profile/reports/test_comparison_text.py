import io
from pathlib import Path

from neuron_profile.reports import comparison_text
from neuron_profile.reports.summary_output import write_summaries


def lines_of(*paths: Path) -> list[str]:
    stream = io.BytesIO()
    write_summaries([str(path) for path in paths], stream)
    return stream.getvalue().decode().splitlines()


def comparison_of(*paths: Path) -> list[list[str]]:
    return [line.split() for line in lines_of(*paths)]


def test_equal_modules_and_lines_stand_in_one_row(make_profile, tiny_tables) -> None:
    framework = {**tiny_tables["FrameworkInstruction"], "layer": ["/model/a", "/model/c", "/model/c"]}
    other = make_profile("other.nprof", {**tiny_tables, "FrameworkInstruction": framework})
    rows = comparison_of(make_profile(), other)
    assert ["Device", "time", "200", "ns", "200", "ns"] in rows
    assert ["/model", "150", "ns", "150", "ns"] in rows
    assert ["/model/a", "130", "ns", "100", "ns"] in rows
    assert ["/model/b", "20", "ns", "-"] in rows
    assert ["/model/c", "-", "50", "ns"] in rows
    assert ["/project/train.py:2", "y", "=", "layer(x)", "100", "ns", "100", "ns"] in rows


def test_profiles_of_one_name_are_told_apart_by_their_folder(make_profile) -> None:
    rows = comparison_of(make_profile("x/run.nprof"), make_profile("y/run.nprof"))
    assert ["x/run.nprof", "y/run.nprof"] in rows


def test_an_empty_profile_stands_beside_a_full_one(make_profile) -> None:
    rows = comparison_of(make_profile(), make_profile("empty.nprof", {}))
    assert ["Device", "time", "200", "ns", "0", "ns"] in rows
    assert ["Tensor", "active,", "of", "device", "time", "40.0", "%", "-"] in rows


def test_a_long_verdict_stands_below_its_name_on_every_line(make_profile, monkeypatch) -> None:
    monkeypatch.setattr(comparison_text, "overview_verdict", lambda *_: "words " * 40)
    said = [line for line in lines_of(make_profile(), make_profile("other.nprof")) if "words" in line]
    assert len(said) > 4
    assert all(line.startswith("  words") for line in said)

from __future__ import annotations

import json

import pytest

from neuron_explorer.library import ProfileEntry, ProfileLibrary
from neuron_profile.agents.tools import MOST_ROWS, Tools, choose
from neuron_tools.errors import NeuronToolsError, UsageError
from tests.unit.neuron_profile.tiny_profile import SOURCE_PATH

ENTRIES = (ProfileEntry("a1", "/runs/a.nprof"), ProfileEntry("b1", "/runs/b.nprof"))


@pytest.fixture
def tools(make_profile, tiny_tables):
    with ProfileLibrary([make_profile(tables=tiny_tables)]) as library:
        yield Tools(library)


def asked(text):
    return json.loads(text)


@pytest.mark.parametrize("wanted", ["a.nprof", "a", "a1"])
def test_a_profile_is_named_by_folder_or_id(wanted):
    assert choose(ENTRIES, wanted) is ENTRIES[0]


def test_the_only_profile_need_not_be_named():
    assert choose(ENTRIES[:1], "") is ENTRIES[0]


@pytest.mark.parametrize(
    ("entries", "wanted", "sentence"),
    [(ENTRIES, "", "Several"), (ENTRIES, "c", "There is no such profile"), ((), "", "There are no profiles")],
)
def test_which_profile_must_be_clear(entries, wanted, sentence):
    with pytest.raises(UsageError, match=sentence):
        choose(entries, wanted)


def test_operators_by_falling_device_time(tools):
    answer = asked(tools.hotspots(level="operator"))
    assert [(row["operator"], row["device_ns"]) for row in answer["rows"]] == [
        ("aten::addmm", 100),
        ("aten::mul", 50),
    ]
    assert answer["rows"][0]["share"] == 0.5
    assert answer["rows"][1]["backward_ns"] == 20


def test_modules_without_the_whole_program(tools):
    rows = asked(tools.hotspots(level="module", limit=1))
    assert rows["rows"][0]["module"] == "/model"
    assert rows["left_out"] == 2


def test_lines_with_their_text(tools):
    first = asked(tools.hotspots())["rows"][0]
    assert (first["file"], first["line"], first["text"]) == (SOURCE_PATH, 2, "y = layer(x)")


def test_a_file_by_the_end_of_its_path(tools):
    answer = asked(tools.lines("train.py", first=2))
    assert answer["file"] == SOURCE_PATH
    assert [row["text"] for row in answer["rows"]] == ["y = layer(x)", "z = y * 2"]
    assert [row.get("device_ns") for row in answer["rows"]] == [100, 50]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda tools: tools.lines("other.py"), "lists no such file"),
        (lambda tools: tools.hotspots(level="galaxy"), "no level 'galaxy'"),
        (lambda tools: tools.summary(profile="x"), "no such profile"),
        (lambda tools: tools.what_if([]), "at least one change"),
        (lambda tools: tools.hotspots(step=4), "no step 4"),
    ],
)
def test_wrong_questions_get_a_sentence(tools, call, sentence):
    with pytest.raises(UsageError, match=sentence):
        call(tools)


def test_sql_says_when_rows_are_left_out(tools):
    answer = asked(tools.sql("SELECT id FROM Instruction ORDER BY id", limit=2))
    assert answer["columns"] == ["id"]
    assert answer["rows"] == [[11], [12]]
    assert answer["more"] is True


def test_no_answer_has_more_rows_than_allowed(tools):
    assert len(asked(tools.sql("SELECT * FROM range(1000)", limit=10**9))["rows"]) == MOST_ROWS


def test_tables_with_rows_and_what_they_mean(tools):
    rows = {row["table"]: row for row in asked(tools.schema())["rows"]}
    assert rows["Instruction"]["rows"] == 5
    assert rows["Instruction"]["meaning"]
    columns = {row["column"]: row for row in asked(tools.schema(table="Instruction"))["rows"]}
    assert columns["duration_ns"]["unit"] == "nanoseconds"


def test_a_summary_says_what_decides(tools):
    answer = asked(tools.summary())
    assert answer["device_ns"] == 200
    assert answer["command"] == "python train.py --name 'a b'"


def test_without_an_edit_a_proposal_says_so(tools):
    pytest.importorskip("libcst")
    with pytest.raises(NeuronToolsError, match="Nothing was found"):
        tools.fix()

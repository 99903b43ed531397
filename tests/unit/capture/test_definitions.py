import linecache

from neuron_tools.capture.definitions import Definitions, DefinitionsReader, DefinitionsWriter
from neuron_tools.records.program import Frame

MADE = ["<eval_with_key>.2", 102, "forward"]


def stack_of(*frames):
    definitions = Definitions()
    definitions.take({"kind": "stack", "id": 1, "frames": list(frames)})
    return definitions.stacks[1]


def test_a_stack_begins_where_somebody_wrote_the_code():
    assert stack_of(MADE, ["train.py", 9, "step"], ["train.py", 20, "main"]) == (
        Frame("train.py", 9, "step"),
        Frame("train.py", 20, "main"),
    )


def test_where_all_code_was_made_of_a_graph_it_is_shown_without_its_number():
    assert stack_of(MADE) == (Frame("<eval_with_key>", 102, "forward"),)


def test_the_text_of_code_without_a_file_is_told_once(tmp_path, monkeypatch):
    cell, lines = "<ipython-input-7-0>", ["x = 1\n"]
    monkeypatch.setattr(linecache, "cache", {cell: (6, None, lines, cell)})  # no cells of other tests
    writer = DefinitionsWriter(tmp_path)
    for number in (1, 2):
        writer.stack(number, [(cell, 1, "<module>"), (__file__, 3, "f")])
    writer.cells()
    writer.close()
    reader = DefinitionsReader(tmp_path)
    reader.poll()
    assert reader.definitions.sources == {cell: "x = 1\n"}
    assert (tmp_path / "definitions.jsonl").read_text().count('"source"') == 1


def test_cells_that_no_stack_names_are_told_too(tmp_path, monkeypatch):
    cell = "/tmp/ipykernel_71/12.py"
    monkeypatch.setitem(linecache.cache, cell, (6, None, ["y = 2\n"], cell))
    monkeypatch.setitem(linecache.cache, "<made by a library>", (6, None, ["z = 3\n"], "made"))
    writer = DefinitionsWriter(tmp_path)
    writer.cells()
    writer.close()
    reader = DefinitionsReader(tmp_path)
    reader.poll()
    assert reader.definitions.sources[cell] == "y = 2\n"
    assert "<made by a library>" not in reader.definitions.sources

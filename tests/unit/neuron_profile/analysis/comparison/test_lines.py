"""Lines of the user's own code are followed from one profile to the other."""

import neuron_tools
from neuron_profile.analysis.comparison.difference import compare

OWN, LIBRARY = "/project/train.py", "/env/site-packages/library.py"
TEXT = "import library\nlibrary.first()\nlibrary.second()\n"


def calling_libraries(tables, text=TEXT, lines=(2, 3), operations=(1, 2, 3), path=OWN):
    """The tiny profile: its operations ran at two lines of a library, for two lines of a script."""
    frames = {
        "id": ["1", "2", "3", "4"],
        "file_location_id": [1, 2, 3, 4],
        "parent_frame_id": ["", "", "1", "2"],
    }
    locations = {
        "id": ["1", "2", "3", "4"],
        "file_name_id": [1, 1, 2, 2],
        "function_name_id": [1] * 4,
        "line_number": [*lines, 7, 8],
    }
    framework = tables["FrameworkInstruction"]
    called = {"stack_frame_ids": ["3", "4", "4"], "source_file": [LIBRARY] * 3, "source_line": [7, 8, 8]}
    kept = [number - 1 for number in operations]
    return {
        **tables,
        "FrameworkInstruction": {
            name: [values[number] for number in kept] for name, values in {**framework, **called}.items()
        },
        "StackFrame": frames,
        "StackFrameFileLocation": locations,
        "StackFrameFileName": {"id": ["1", "2"], "name": [path, LIBRARY]},
        "SourceFile": {"path": [path], "sha256": ["00"], "text": [text]},
    }


def longer(tables):
    """The same, its second execution and the operations in it 40 ns longer."""
    events = tables["SystemProfileEvents"]
    ends = [end + 40 if start == 1200 else end for start, end in zip(events["start_ts"], events["end_ts"])]
    return {**tables, "SystemProfileEvents": {**events, "end_ts": ends}}


def difference(make_profile, base, new):
    with (
        neuron_tools.open_profile(make_profile("base.nprof", base)) as before,
        neuron_tools.open_profile(make_profile("new.nprof", new)) as after,
    ):
        return compare(before, after)


def test_lines_that_moved_are_the_same(make_profile, tiny_tables):
    moved = calling_libraries(tiny_tables, f"# Trains.\n\n{TEXT}", (4, 5))
    assert difference(make_profile, calling_libraries(tiny_tables), moved).lines == ()


def test_a_line_that_is_gone_and_a_new_one_stand_apart(make_profile, tiny_tables):
    new = calling_libraries(tiny_tables, TEXT.replace("second", "third"))
    lines = difference(make_profile, calling_libraries(tiny_tables), new).lines
    assert [(line.place.line, line.base_ns, line.new_ns, line.text) for line in lines] == [
        (3, 0, 50, "library.third()"),
        (3, 50, 0, "library.second()"),
    ]


def test_a_line_has_what_its_libraries_took_longer(make_profile, tiny_tables):
    base = calling_libraries(tiny_tables, operations=(1, 2))
    found = difference(make_profile, base, calling_libraries(tiny_tables))
    changes = {line.place.line: line.delta_ns for line in found.lines}
    assert changes.keys() <= {2, 3}
    assert sum(changes.values()) == sum(d.delta_ns for d in found.deltas if d.key.module)


def test_operations_stand_at_the_users_line_with_the_librarys_beside_it(make_profile, tiny_tables):
    tables = calling_libraries(tiny_tables)
    found = difference(make_profile, tables, longer(tables))
    places = {(d.file, d.line, d.library_file, d.library_line) for d in found.deltas if d.key.module}
    assert places == {(OWN, 2, LIBRARY, 7), (OWN, 3, LIBRARY, 8)}


def test_a_script_in_another_folder_is_the_same_script(make_profile, tiny_tables):
    new = calling_libraries(tiny_tables, path="/elsewhere/train.py")
    assert difference(make_profile, calling_libraries(tiny_tables), new).lines == ()

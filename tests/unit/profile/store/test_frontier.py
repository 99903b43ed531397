import duckdb
import pytest

from neuron_tools.profile.store.frontier import OwnCode, frontier_query, own_code_of

TRAIN, MODEL = (
    "/home/me/project/train.py",
    "/home/me/project/.venv/lib/python3.11/site-packages/llama/model.py",
)


def lines(stacks, own=OwnCode(), installed_in=None, modules=()):
    """The view's rows by stack, of frames given as id: (file, line, parent); folders by installed file.

    `modules` are the frames that run a module's own lines; the others run a function.
    """
    database = duckdb.connect(":memory:")
    files = sorted({file for file, _, _ in stacks.values()})
    places = list(stacks)
    for statement in (
        "CREATE TABLE StackFrame (id VARCHAR, file_location_id INTEGER, parent_frame_id VARCHAR)",
        "CREATE TABLE StackFrameFileLocation (id VARCHAR, file_name_id INTEGER, function_name_id INTEGER, "
        "line_number INTEGER)",
        "CREATE TABLE StackFrameFileName (id VARCHAR, name VARCHAR, installed_in VARCHAR)",
        "CREATE TABLE StackFrameFunctionName (id VARCHAR, name VARCHAR)",
        "INSERT INTO StackFrameFunctionName VALUES ('1', 'f'), ('2', '<module>')",
    ):
        database.execute(statement)
    for number, file in enumerate(files):
        folder = (installed_in or {}).get(file)
        database.execute("INSERT INTO StackFrameFileName VALUES (?, ?, ?)", [str(number), file, folder])
    for number, name in enumerate(places):
        file, line, parent = stacks[name]
        location = [str(number), files.index(file), 2 if name in modules else 1, line]
        database.execute("INSERT INTO StackFrameFileLocation VALUES (?, ?, ?, ?)", location)
        database.execute("INSERT INTO StackFrame VALUES (?, ?, ?)", [name, number, parent])
    rows = database.execute(frontier_query(own)).fetchall()
    return {stack: (file, line, is_own) for stack, file, line, _, is_own in rows}


def test_a_librarys_line_counts_to_the_users_that_called_it():
    found = lines({"1": (TRAIN, 20, ""), "2": (TRAIN, 7, "1"), "3": (MODEL, 90, "2"), "4": (MODEL, 95, "3")})
    assert found == {
        "1": (TRAIN, 20, True),
        "2": (TRAIN, 7, True),
        "3": (TRAIN, 7, True),
        "4": (TRAIN, 7, True),
    }


def test_a_callback_of_the_users_is_its_own_line():
    found = lines({"1": (TRAIN, 20, ""), "2": (MODEL, 90, "1"), "3": (TRAIN, 4, "2"), "4": (MODEL, 9, "3")})
    assert found["4"] == (TRAIN, 4, True)
    assert found["2"] == (TRAIN, 20, True)


def test_code_that_a_library_made_is_not_the_users():
    """A data class's methods have the file that `python -c` has."""
    made = {"1": (TRAIN, 20, ""), "2": (MODEL, 90, "1"), "3": ("<string>", 5, "2"), "4": (MODEL, 9, "3")}
    assert set(lines(made).values()) == {(TRAIN, 20, True)}


def test_a_command_line_is_the_users_and_what_it_calls_counts_to_it():
    command = {
        "1": ("<string>", 1, ""),
        "2": ("<string>", 3, "1"),
        "3": (MODEL, 90, "2"),
        "4": ("<string>", 5, "3"),
    }
    assert [line for _, line, _ in lines(command).values()] == [1, 3, 3, 3]


def test_a_command_by_which_python_starts_a_process_is_not_the_users():
    spawn = "/usr/lib/python3.11/multiprocessing/spawn.py"
    worker = {"1": ("<string>", 1, ""), "2": (spawn, 122, "1"), "3": (MODEL, 90, "2"), "4": (TRAIN, 4, "3")}
    found = lines(worker)
    assert found["3"] == (MODEL, 90, False)
    assert found["4"] == (TRAIN, 4, True)


def test_a_stack_without_a_line_of_the_users_keeps_its_own():
    assert lines({"1": (MODEL, 90, ""), "2": (MODEL, 95, "1")})["2"] == (MODEL, 95, False)


RECIPE = "/opt/venv/lib/python3.11/site-packages/recipes/finetune.py"
LIBRARY = "/opt/venv/lib/python3.11/site-packages/library/model.py"


def test_an_installed_program_has_the_lines_of_its_own_package():
    stacks = {"1": (RECIPE, 90, ""), "2": (RECIPE, 40, "1"), "3": (LIBRARY, 7, "2")}
    assert lines(stacks, modules="1")["3"] == (RECIPE, 40, True)
    assert lines(stacks, OwnCode(("/home/me",)), modules="1")["3"] == (LIBRARY, 7, False), "named otherwise"
    hook = {"1": (LIBRARY, 3, ""), "2": (LIBRARY, 5, "1")}
    assert lines(hook)["2"] == (LIBRARY, 5, False), "called from outside, it is no program"


def test_an_installed_program_that_runs_the_users_file_leaves_its_lines_to_it():
    found = lines({"1": (RECIPE, 90, ""), "2": (TRAIN, 4, "1"), "3": (RECIPE, 8, "2")}, modules="1")
    assert [found[stack][:2] for stack in "123"] == [(RECIPE, 90), (TRAIN, 4), (TRAIN, 4)]


def test_a_main_module_that_a_program_runs_is_the_program_from_there_on():
    stacks = {
        "1": ("/opt/venv/bin/tune", 8, ""),
        "2": (LIBRARY, 20, "1"),
        "3": (RECIPE, 90, "2"),
        "4": (LIBRARY, 30, "3"),
    }
    found = lines(stacks, modules="13")
    assert [found[stack][:2] for stack in "234"] == [(LIBRARY, 20), (RECIPE, 90), (RECIPE, 90)]


def test_the_script_that_starts_an_installed_program_is_not_the_users():
    model = "/tmp/target/library/model.py"
    for script, file in (("/opt/venv/bin/serve", LIBRARY), ("/tmp/target/bin/serve", model)):
        stacks = {"1": (script, 8, ""), "2": (file, 20, "1")}
        assert lines(stacks, installed_in={model: "/tmp/target"})["2"] == (file, 20, True)
    own = {"1": ("/home/me/project/bin/train", 8, ""), "2": (MODEL, 20, "1")}
    assert lines(own)["2"] == ("/home/me/project/bin/train", 8, True)


@pytest.mark.parametrize(
    ("file", "is_own"),
    [
        ("/home/me/project/train.py", True),
        ("train.py", True),
        ("<stdin>", True),
        ("<string>", True),
        ("/tmp/ipykernel_7/123.py", True),
        ("<frozen runpy>", False),
        ("<eval_with_key>.3", False),
        ("/usr/lib/python3.11/threading.py", False),
        ("/usr/lib/python3/dist-packages/numpy/core.py", False),
        ("/opt/conda/lib/python3.12/site-packages/torch/nn/modules/linear.py", False),
    ],
)
def test_what_is_not_installed_is_the_users_own(file, is_own):
    assert lines({"1": (file, 1, "")})["1"] == (file, 1, is_own)


def test_named_folders_and_what_was_typed_are_the_users_own_and_nothing_else():
    own = OwnCode(("/home/me/project/src", "/opt/venv/lib/python3.11/site-packages/mine/"))
    files = {
        "1": ("/home/me/project/src/a.py", 1, ""),
        "2": ("/home/me/project/other.py", 1, ""),
        "3": ("/home/me/project/src/.venv/lib/python3.11/site-packages/x.py", 1, ""),
        "4": ("/opt/venv/lib/python3.11/site-packages/mine/b.py", 1, ""),
        "5": ("/home/me/project/src2/a.py", 1, ""),
        "6": ("/tmp/ipykernel_7/123.py", 1, ""),
        "7": ("<ipython-input-1-0f>", 1, ""),
    }
    found = lines(files, own)
    assert [found[stack][2] for stack in files] == [True, False, False, True, False, True, True]


@pytest.mark.parametrize(
    ("folders", "is_own"),
    [((), False), (("/tmp/target/llama",), True), (("/tmp/target",), True), (("/tmp",), False)],
)
def test_what_was_installed_into_any_folder_is_the_users_own_only_where_it_is_named(folders, is_own):
    model = "/tmp/target/llama/model.py"
    stacks = {"1": ("/tmp/train.py", 7, ""), "2": (model, 90, "1")}
    found = lines(stacks, OwnCode(folders), {model: "/tmp/target"})
    assert (found["2"][:2] == (model, 90)) == is_own


def test_the_environment_names_folders_as_path_does():
    assert own_code_of({}) == OwnCode()
    assert own_code_of({"NEURON_OWN_CODE": "/a:/b"}) == OwnCode(("/a", "/b"))

import pytest

from neuron_explorer.collective_waits import LineWait, RankWait, collective_waits
from neuron_tools import open_profile
from tests.unit.neuron_profile.analysis.test_communication import collectives


def test_ranks_have_what_they_waited_and_how_often_they_came_last(make_profile, tiny_tables) -> None:
    processes = {name: values * 2 for name, values in tiny_tables["ProcessInfo"].items()}
    calls = collectives(
        [100, 100, 300, 300], [110, 110, 320, 320],
        process_idx=[1, 2, 1, 2], cc_trigger_start_delay=[40, 0, 0, 7], last_rank=[1, 1, 0, 0],
        source_file=["/a.py"] * 4, source_line=[3, 3, 9, 9],
    )  # fmt: skip
    tables = {
        **tiny_tables,
        "ProcessInfo": processes | {"process_idx": [1, 2], "rank": [0, 1], "host": ["one", "two"]},
        "CcOp": calls,
    }
    with open_profile(make_profile(tables=tables)) as profile:
        waits = collective_waits(profile)
    assert waits.ranks == (RankWait(0, "one", 2, 30, 40, 1), RankWait(1, "two", 2, 30, 7, 1))
    assert waits.lines == (
        LineWait("/a.py", 3, "AllReduce", 2, 20, 40),
        LineWait("/a.py", 9, "AllReduce", 2, 40, 7),
    )


@pytest.mark.parametrize("columns", [{}, {"process_idx": [0]}])
def test_what_is_not_known_of_ranks_and_lines_is_left_open(make_profile, tiny_tables, columns) -> None:
    tables = {**tiny_tables, "CcOp": collectives([0], [5], **columns)}
    with open_profile(make_profile(tables=tables)) as profile:
        waits = collective_waits(profile)
    assert waits.ranks == (RankWait(0, "", 1, 5, 5, 0),)
    assert waits.lines[0].file == ""

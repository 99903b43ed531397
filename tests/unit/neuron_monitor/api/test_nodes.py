import os

import pytest

from neuron_monitor.api import nodes
from neuron_monitor.api.nodes import Fault, NodeTable


@pytest.fixture
def table(tmp_path):
    for name, text in (("a", "1\n"), ("b", "2\n"), ("c", "3\n")):
        (tmp_path / name).write_text(text)
    table = NodeTable([str(tmp_path / name) for name in "abc"])
    yield table
    table.close()


def test_reading_tells_which_nodes_changed(table, tmp_path):
    assert table.read([0, 1, 2]) == [0, 1, 2]
    assert table.read([0, 1, 2]) == []
    (tmp_path / "b").write_text("20\n")
    assert table.read([0, 1, 2]) == [1]
    assert table.values.tolist() == [1, 20, 3]


def test_a_missing_node_is_a_fault_and_keeps_its_value(table, tmp_path):
    table.read([0, 1, 2])
    table.close()
    (tmp_path / "a").unlink()
    assert table.read([0]) == []
    assert table.values[0] == 1
    assert table.fault_list() == [Fault(str(tmp_path / "a"), "no such file or directory")]


def test_a_node_that_comes_back_is_no_fault_any_more(table, tmp_path):
    table.read([0])
    table.close()
    (tmp_path / "a").rename(tmp_path / "elsewhere")
    table.read([0])
    (tmp_path / "a").write_text("1\n")
    table.read([0])
    assert table.fault_list() == []


@pytest.mark.parametrize(("text", "reason"), [("", "empty"), ("spam\n", "not a number: b'spam\\n'")])
def test_a_node_without_a_number_is_a_fault(table, tmp_path, text, reason):
    table.read([0])
    (tmp_path / "a").write_text(text)
    table.read([0])
    assert [fault.reason for fault in table.fault_list()] == [reason]
    assert table.values[0] == 1


def test_a_folder_or_a_pipe_in_the_place_of_a_node_is_a_fault(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    table = NodeTable([str(tmp_path / "folder"), str(tmp_path / "pipe")])
    table.read([0, 1])
    assert len(table.fault_list()) == 2
    table.close()


def test_a_process_that_may_open_few_files_still_reads_all(table, monkeypatch):
    opened = []
    open_file = os.open

    def refuse_the_second(path, flags):
        opened.append(path)
        if len(opened) == 2:
            raise OSError(24, "too many open files")
        return open_file(path, flags)

    monkeypatch.setattr(nodes.os, "open", refuse_the_second)
    table.read([0, 1, 2])
    table.read([0, 1, 2])
    assert table.values.tolist() == [1, 2, 3]
    assert table.fault_list() == []

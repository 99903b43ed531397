from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from neuron_tools.device.driver.writer import NodeWriter


def test_a_shorter_value_leaves_nothing_of_the_longer_one(tmp_path: Path) -> None:
    node = tmp_path / "present"
    node.write_text("0\n")
    with closing(NodeWriter()) as writer:
        for value in (123_456, 7, 89):
            writer.write_number(str(node), value)
            assert node.read_text() == f"{value}\n"


def test_a_file_that_stays_open_sees_new_values(tmp_path: Path) -> None:
    node = tmp_path / "total"
    node.write_text("0\n")
    with node.open() as reader, closing(NodeWriter()) as writer:
        writer.write_number(str(node), 5)
        assert reader.read() == "5\n"
        writer.write(str(node), "a text\n")
        reader.seek(0)
        assert reader.read() == "a text\n"


def test_a_node_that_is_gone_is_an_error_and_a_new_one_is_found_after_forgetting(tmp_path: Path) -> None:
    with closing(NodeWriter()) as writer:
        with pytest.raises(FileNotFoundError):
            writer.write_number(str(tmp_path / "gone"), 1)
        node = tmp_path / "node"
        node.write_text("0\n")
        writer.write_number(str(node), 1)
        node.unlink()
        node.write_text("0\n")
        writer.forget(str(tmp_path))
        writer.write_number(str(node), 1)
        assert node.read_text() == "1\n"

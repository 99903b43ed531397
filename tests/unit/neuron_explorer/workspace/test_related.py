"""What belongs to a selection: sums that add up, of operations, modules and lines."""

from __future__ import annotations

import pytest

from neuron_explorer.workspace.related import Piece, charged_pieces, related_to
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_tools import open_profile
from neuron_tools.errors import UsageError

PIECES = (
    Piece("aten::mm", "/model/layers/0", ("a.py:3", "lib.py:9"), 30.0),
    Piece("aten::mm", "/model/layers/1", ("a.py:3",), 20.0),
    Piece("aten::add", "/model/layers/1", ("a.py:4",), 10.0),
)


def test_an_operation_leads_to_its_modules_and_lines() -> None:
    found = related_to(PIECES, "operation", "aten::mm")
    assert (found.device_ns, found.total_ns) == (50.0, 60.0)
    assert found.modules == {"/model/layers/0": 30.0, "/model/layers/1": 20.0}
    assert found.lines == {"a.py:3": 50.0, "lib.py:9": 30.0}


def test_a_module_has_all_that_is_inside_it_and_a_line_what_stands_at_it() -> None:
    assert related_to(PIECES, "module", "/model").device_ns == 60.0
    assert related_to(PIECES, "module", "/model/layers/1").operations == {"aten::mm": 20.0, "aten::add": 10.0}
    assert related_to(PIECES, "module", "/model/lay").device_ns == 0.0
    assert related_to(PIECES, "line", "lib.py:9").operations == {"aten::mm": 30.0}


def test_what_cannot_be_chosen_is_said() -> None:
    with pytest.raises(UsageError, match="Nothing is chosen by 'rank'"):
        related_to(PIECES, "rank", "1")


def test_the_pieces_of_a_profile_add_up_to_its_charges(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        pieces, charges = charged_pieces(profile), charge_device_time(profile).charges
        assert sum(piece.device_ns for piece in pieces) == sum(charge.device_ns for charge in charges) > 0
        assert any(piece.lines for piece in pieces)

"""Device time by stacks: it adds up, and inside kernels it goes to the kernel's own lines."""

from __future__ import annotations

from typing import Any

import pytest

from neuron_profile.analysis.time.charges import charge_device_time
from neuron_profile.analysis.time.stack_charges import StackPair, charge_stacks
from neuron_tools import open_profile
from tests.unit.neuron_profile.analysis.time.test_charges import with_shares


def test_charges_are_those_of_the_operations(make_profile: Any) -> None:
    with open_profile(make_profile()) as profile:
        charged = charge_stacks(profile)
        expected = charge_device_time(profile)
    assert charged == pytest.approx(
        {
            StackPair("1", "1", False): 100,
            StackPair("2", "2", False): 30,
            StackPair("2", "2", True): 20,
            StackPair("", "", False): 50,
        }
    )
    assert sum(charged.values()) == pytest.approx(expected.device_ns)


def test_instructions_with_a_stack_of_their_own_keep_it(make_profile: Any, tiny_tables: Any) -> None:
    own = {**tiny_tables["Instruction"], "stack_frame_ids": ["", "7", "7,3", "", ""]}
    with open_profile(make_profile(tables={**tiny_tables, "Instruction": own})) as profile:
        charged = charge_stacks(profile)
    assert charged[StackPair("7", "1", False)] == pytest.approx(50)
    assert charged[StackPair("1", "1", False)] == pytest.approx(50)
    assert sum(charged.values()) == pytest.approx(200)


def test_shares_add_up_by_stack_as_they_do_by_operation(make_profile, tiny_tables) -> None:
    tables = with_shares(tiny_tables, [(1, 0.6), (3, 0.4)])
    with open_profile(make_profile(tables=tables)) as profile:
        by_stack, by_operation = charge_stacks(profile), charge_device_time(profile)
    expected: dict[str, float] = {}
    for charge in by_operation.charges:
        expected[charge.origin.stack] = expected.get(charge.origin.stack, 0.0) + charge.device_ns
    found: dict[str, float] = {}
    for pair, time in by_stack.items():
        found[pair.operation] = found.get(pair.operation, 0.0) + time
    assert {stack: found[stack] for stack in expected} == pytest.approx(expected)
    assert sum(by_stack.values()) == pytest.approx(200)

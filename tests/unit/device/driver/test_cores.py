from __future__ import annotations

import pytest

from neuron_tools.device.driver.cores import CoreMap, core_map, parse_cores


@pytest.mark.parametrize(
    ("text", "cores"), [("0-3,6", (0, 1, 2, 3, 6)), ("5", (5,)), ("", ()), ("a-b", ()), ("3-1", ())]
)
def test_core_lists(text: str, cores: tuple[int, ...]) -> None:
    assert parse_cores(text) == cores


def test_a_process_has_the_cores_that_it_names() -> None:
    assert core_map(2, (), 8, {"NEURON_RT_VISIBLE_CORES": "4,6"}) == CoreMap((4, 6), (4, 6))


def test_a_process_that_asks_for_a_number_gets_the_first_free_block() -> None:
    asked = {"NEURON_RT_NUM_CORES": "2"}
    assert core_map(2, (), 8, asked) == CoreMap((0, 1), (0, 1))
    assert core_map(2, (0, 1, 3), 8, asked) == CoreMap((4, 5), (4, 5))


def test_where_nothing_is_free_cores_are_shared() -> None:
    assert core_map(4, (1, 5), 8, {"NEURON_RT_NUM_CORES": "4"}).numbers == (0, 1, 2, 3)


def test_processes_that_ask_for_nothing_and_ranks_that_see_all_cores_share() -> None:
    assert core_map(2, (0, 1), 8, {}) == CoreMap((0, 1))
    ranks = {"NEURON_RT_NUM_CORES": "4", "LOCAL_WORLD_SIZE": "4"}
    assert core_map(4, (0,), 8, ranks) == CoreMap((0, 1, 2, 3))


def test_core_numbers_stay_on_the_machine() -> None:
    assert CoreMap((9, 1)).core_id(0, 8) == 1
    assert CoreMap((0,)).core_id(3, 8) == 3

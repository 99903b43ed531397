"""A state that several blocks have together."""

from contextlib import contextmanager

import pytest

from neuron_tools.shared_block import SharedBlock


def test_the_state_begins_with_the_first_block_and_ends_with_the_last():
    told = []

    @contextmanager
    def state():
        told.append("begins")
        yield
        told.append("ends")

    block = SharedBlock(state)
    for _ in range(2):
        first, second = block(), block()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert told == ["begins"]
        second.__exit__(None, None, None)
        assert told == ["begins", "ends"]
        told.clear()


def test_a_state_that_cannot_be_set_is_tried_again_by_the_next_block():
    tried = []

    @contextmanager
    def state():
        tried.append(len(tried))
        if len(tried) == 1:
            raise OSError("busy")
        yield

    block = SharedBlock(state)
    with pytest.raises(OSError, match="busy"), block():
        pytest.fail("the block began")
    with block():
        assert tried == [0, 1]

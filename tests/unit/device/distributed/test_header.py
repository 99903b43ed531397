"""What ranks tell each other, and what they say where it does not match."""

import pytest

from neuron_tools.device.distributed import header
from neuron_tools.device.distributed.header import TEXT_BYTES, Header


@pytest.mark.parametrize("text", ["all_reduce of 4 float32 at train.py:3", "é" * TEXT_BYTES, ""])
def test_a_header_survives_the_way_as_far_as_there_is_room(text):
    sent = Header(7, header.fingerprint(text), 1 << 60, -1, 3, text)
    (received,) = header.unpack([sent.pack()])
    assert received.text == text.encode()[:TEXT_BYTES].decode("utf-8", "replace")
    numbers = ("sequence", "fingerprint", "ready_ns", "link_free_ns", "source")
    assert [getattr(received, name) for name in numbers] == [getattr(sent, name) for name in numbers]


def test_equal_calls_match():
    assert header.mismatch([Header(0, 5, 0, 0, 0, "a"), Header(0, 5, 9, 0, 1, "b")], [4, 6], 0) is None


def test_a_mismatch_names_both_ranks_and_lines():
    one = Header(2, 5, 0, 0, 0, "all_reduce of 4 float32 at a.py:1")
    other = Header(2, 6, 0, 0, 1, "broadcast of 4 float32 at b.py:9")
    text = header.mismatch([one, other], [4, 6], 0)
    assert "Collective 2 of ranks [4, 6]" in text
    assert "rank 4 calls all_reduce of 4 float32 at a.py:1" in text
    assert "rank 6 calls broadcast of 4 float32 at b.py:9" in text


def test_room_for_headers_is_on_the_host_whatever_the_default_device():
    import torch

    with torch.device("meta"):
        assert {tensor.device.type for tensor in header.empty(2)} == {"cpu"}

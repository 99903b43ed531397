"""How a user spells a change, and which changes have no spelling."""

import pytest

from neuron_profile.analysis.whatif.change import Change, parse_change


@pytest.mark.parametrize(
    "text", ["op:softmax=0", "dma=0", "dtype=bf16", "tiles=fit", "buffers=own", "hbm_bandwidth=2x"]
)
def test_what_is_read_from_a_text_can_be_asked_for_by_it(text):
    assert parse_change(text).is_spelt


@pytest.mark.parametrize("text", ["transposes=0", "throttling", ""])
def test_a_rules_own_change_has_no_spelling(text):
    assert not Change(text, lambda variant, _: variant).is_spelt

"""An archive for NeuronCore-v1 runs on no other core, and the reverse."""

import pytest

from neuron_tools.neff import NeffError
from neuron_tools.neff.generation import check_generation


@pytest.mark.parametrize(("target", "present"), [("inf1", 1), ("inf2", 2), ("trn1", 3)])
def test_what_a_core_can_load_is_taken(target, present):
    check_generation(target, present)


@pytest.mark.parametrize(("target", "compiled", "present"), [("inf1", 1, 2), ("trn1", 2, 1)])
def test_another_generation_is_refused_in_a_sentence(target, compiled, present):
    refusal = rf"compiled for NeuronCore-v{compiled} \({target}\) and cannot run on NeuronCore-v{present}"
    with pytest.raises(NeffError, match=refusal):
        check_generation(target, present)

"""Settings of the command line change figures, absolutely or by a factor."""

import pytest

from neuron_tools import hardware
from neuron_tools.errors import UsageError

CORE = hardware.get("trn2")


def test_a_factor_multiplies_and_a_number_replaces():
    core = hardware.apply_settings(CORE, ["hbm_bandwidth=2x", "dma_engines=8", "tensor_clock_ghz = 0.5x"])
    assert core.hbm_bandwidth == 2 * CORE.hbm_bandwidth
    assert core.dma_engines == 8
    assert core.tensor_clock_ghz == 1.2
    assert core.sbuf_bytes == CORE.sbuf_bytes


def test_whole_figures_stay_whole():
    assert isinstance(hardware.apply_settings(CORE, ["dma_engines=0.5x"]).dma_engines, int)


@pytest.mark.parametrize(
    "setting",
    ["hbm_bandwidth", "bandwidth=2x", "hbm_bandwidth=fast", "hbm_bandwidth=", "hbm_bandwidth=-1",
     "hbm_bandwidth=0x", "hbm_bandwidth=nan", "dma_engines=0", "name=trn9"],
)  # fmt: skip
def test_a_bad_setting_is_a_usage_error_that_quotes_it(setting):
    with pytest.raises(UsageError) as error:
        hardware.apply_settings(CORE, [setting])
    assert repr(setting) in str(error.value)


def test_replace_refuses_unknown_figures():
    assert CORE.replace(hbm_bandwidth=1e12).hbm_bandwidth == 1e12
    with pytest.raises(UsageError, match="no figure 'speed'"):
        CORE.replace(speed=2)

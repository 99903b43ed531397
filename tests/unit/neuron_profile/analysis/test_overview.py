import pytest

from neuron_profile.analysis.overview import EngineUse, make_overview
from neuron_profile.analysis.warnings import ProfileWarning
from neuron_tools import open_profile


def test_engines_that_were_active(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        overview = make_overview(profile)
    assert overview.engines == (EngineUse("Tensor", 80, 0.32, 0.4), EngineUse("DMA", 20, 0.08, 0.1))


def test_utilization_while_the_device_was_busy(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        overview = make_overview(profile)
    assert overview.total_ns == pytest.approx(250)
    assert overview.while_busy("mfu_estimated_percent") == pytest.approx(0.25 * 250 / 200)
    assert overview.while_busy("unknown_metric") == 0


def test_a_profile_without_a_summary_has_an_overview(make_profile) -> None:
    with open_profile(make_profile(tables={}, complete=False)) as profile:
        overview = make_overview(profile)
    assert (overview.engines, overview.total_ns, overview.while_busy("mfu_estimated_percent")) == ((), 0, 0)


def test_equal_warnings_are_joined(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        warnings = make_overview(profile).warnings
    assert warnings == (
        ProfileWarning("compiler", "aten::foo runs on the host", 2),
        ProfileWarning("thermal", "hot", 1),
    )

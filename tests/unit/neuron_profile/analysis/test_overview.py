from neuron_profile.analysis.overview import EngineUse, engine_use, make_overview
from neuron_profile.analysis.warnings import ProfileWarning
from neuron_tools import open_profile


def test_engines_that_the_metrics_know_and_no_idle_collectives(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        overview = make_overview(profile)
    assert overview.engines == (EngineUse("Tensor", 80, 0.4), EngineUse("DMA", 20, 0.1))


def test_collectives_that_ran_are_an_engine() -> None:
    metrics = {"cc_op_active_time": 1e-6, "cc_op_active_time_percent": 0.1}
    assert engine_use(metrics) == (EngineUse("Collectives", 1000, 0.1),)


def test_equal_warnings_are_joined(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        warnings = make_overview(profile).warnings
    assert warnings == (
        ProfileWarning("compiler", "aten::foo runs on the host", 2),
        ProfileWarning("thermal", "hot", 1),
    )

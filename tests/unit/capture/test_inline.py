import pytest

from neuron_tools.capture.inline import profile
from neuron_tools.errors import UsageError


@pytest.mark.parametrize(
    "wrong",
    [{"target": "trn99"}, {"lnc": 3}, {"host_clock": "odd"}, {"settings": ["bogus=1"]}, {"settings": "x"}],
)
def test_wrong_usage_is_refused_before_anything_is_made(tmp_path, wrong):
    with pytest.raises(UsageError):
        profile(tmp_path / "run.nprof", **wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "settings",
    [["hbm_bandwidth=2x"], ("hbm_bandwidth=2x",), iter(["hbm_bandwidth=2x"]), "hbm_bandwidth=2x"],
)
def test_settings_are_any_texts(tmp_path, settings):
    assert profile(tmp_path / "run.nprof", settings=settings)._options.settings == ("hbm_bandwidth=2x",)


def test_an_existing_path_is_refused_without_advice_for_the_command(tmp_path):
    with pytest.raises(UsageError, match="exists: choose another path"), profile(tmp_path):
        pass

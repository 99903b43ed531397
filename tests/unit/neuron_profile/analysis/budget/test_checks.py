import pytest

import neuron_tools
from neuron_profile.analysis.budget.budget import Budget, read_budget
from neuron_profile.analysis.budget.checks import check_budget
from neuron_profile.reports.budget_text import as_junit
from neuron_tools.errors import UsageError


@pytest.fixture
def tiny_path(make_profile):
    return make_profile()


def checks(tiny_path, budget):
    with neuron_tools.open_profile(tiny_path) as profile:
        return {check.name: check for check in check_budget(profile, budget)}


def test_bounds_are_measured_and_compared(tiny_path):
    found = checks(
        tiny_path,
        Budget(
            total={"device_time_ms": 0.0002, "time_ms": 0.00029, "executions": 2},
            parts={
                "module": {"model/a": 0.0002, "/model/b": 0.00001},
                "operation": {"aten::mul": 1.0},
                "line": {},
            },
        ),
    )
    assert found["device_time_ms"].measured == pytest.approx(0.0002)
    assert {name: check.holds for name, check in found.items()} == {
        "device_time_ms": True,
        "time_ms": False,
        "executions": True,
        "module model/a": True,
        "module /model/b": False,
        "operation aten::mul": True,
    }


def test_what_the_profile_does_not_tell_does_not_hold(tiny_path):
    found = checks(tiny_path, Budget(parts={"module": {"model/nowhere": 5.0}}))
    assert found["module model/nowhere"].measured is None
    assert not found["module model/nowhere"].holds


def test_a_base_bounds_the_growth(tiny_path):
    (check,) = checks(tiny_path, Budget(base=tiny_path, most_percent=0.0)).values()
    assert check.measured == 0
    assert check.holds


def test_junit_names_what_is_broken(tiny_path):
    from xml.etree import ElementTree

    found = checks(tiny_path, Budget(total={"executions": 1, "device_time_ms": 1}))
    suite = ElementTree.fromstring(as_junit(list(found.values())))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "2, allowed <= 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[total\n", "is no valid TOML"),
        ("[total]\nspeed = 1\n", "unknown entry 'speed'"),
        ("[cake]\n", "unknown entry 'cake'"),
        ("[total]\ntime_ms = 'fast'\n", "time_ms must be a number"),
        ("[module.x]\nbytes = 1\n", r'write \[module."x"\] with time_ms'),
        ("total = 3\n", "total must be a table"),
        ("", "bounds nothing"),
        ("[total]\n[findings]\nforbid = []\nminimum_gain = 0.1\n", "bounds nothing"),
    ],
)
def test_a_wrong_budget_is_one_sentence(tmp_path, text, message):
    file = tmp_path / "budget.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_budget(file)


def test_a_missing_budget(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_budget(tmp_path / "none.toml")

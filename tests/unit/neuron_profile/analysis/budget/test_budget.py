from __future__ import annotations

import pytest

from neuron_profile.analysis.budget.budget import read_budget
from neuron_tools.errors import UsageError


def forbidding(tmp_path, text):
    path = tmp_path / "budget.toml"
    path.write_text(f"[findings]\nforbid = {text}\n")
    return read_budget(path)


@pytest.mark.parametrize("name", ["host_synchronisation", "host_synchronization"])
def test_a_rule_is_forbidden_in_either_spelling(tmp_path, name):
    assert forbidding(tmp_path, f'["{name}", "spill"]').forbidden == ("host_synchronisation", "spill")


def test_a_rule_that_does_not_exist_is_refused_with_those_that_do(tmp_path):
    with pytest.raises(UsageError, match=r"'nonsense', which is no rule of the advice: .*small_dma"):
        forbidding(tmp_path, '["nonsense"]')


def test_a_rule_alone_is_no_list(tmp_path):
    with pytest.raises(UsageError, match="must be a list"):
        forbidding(tmp_path, '"spill"')

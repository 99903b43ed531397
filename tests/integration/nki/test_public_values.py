"""Published kernels as their authors wrote them give their references' values."""

from __future__ import annotations

import pytest

from benchmarks import public_values
from benchmarks.fidelity_kernels.public import FOLDER, folder

ROOT = folder()
CASES = public_values.cases(ROOT) if ROOT is not None else []


@pytest.mark.slow
@pytest.mark.skipif(not CASES, reason=f"{FOLDER} names no folder with checkouts of kernels")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_published_kernel_gives_the_values_of_its_reference(case):
    assert public_values.relative_error(case) <= public_values.LIMIT


def test_without_checkouts_it_says_what_to_set(monkeypatch, capsys):
    monkeypatch.delenv(FOLDER, raising=False)
    assert public_values.main([]) == 2
    assert FOLDER in capsys.readouterr().out

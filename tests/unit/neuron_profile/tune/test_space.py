from __future__ import annotations

import pytest

from neuron_profile.tune.load import load_module
from neuron_profile.tune.measurement import Candidate
from neuron_profile.tune.patch import as_patch, patched_text
from neuron_profile.tune.space import read_space
from neuron_tools.errors import UsageError

KERNEL = """from typing import Literal

ROWS, WIDE = 128, 512  # a tile
DOUBLE = ROWS * 2


def kernel(a, *, parts: Literal[1, 2] = 1, engine="vector"):  # ünïcode
    return ROWS, parts, engine
"""


@pytest.fixture
def kernel(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNEL)
    return Candidate.named(f"{tmp_path}/kernels.py:kernel")


def space_file(kernel, text):
    path = kernel.path.parent / "space.toml"
    path.write_text(text)
    return path


def test_literals_of_the_signature_are_a_space(kernel):
    space = read_space(None, kernel)
    assert space.parameters == {"parts": (1, 2)}
    assert space.size == 2


def test_a_file_adds_keywords_and_constants(kernel):
    path = space_file(kernel, '[parameters]\nROWS = [64, 128]\nengine = ["vector", "scalar"]')
    space = read_space(path, kernel)
    assert space.size == 8
    assert {"parts": 2, "ROWS": 64, "engine": "scalar"} in list(space.candidates())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[parameters]\nrows = [1]", "neither a parameter rows"),
        ("[parameters]\nROWS = []", "must be a list"),
        ("wrong = 1", "unknown entry 'wrong'"),
        ("tolerance = -1", "tolerance must be a number"),
        ("[parameters", "no valid TOML"),
    ],
)
def test_a_wrong_space_is_refused_in_a_sentence(kernel, text, sentence):
    with pytest.raises(UsageError, match=sentence):
        read_space(space_file(kernel, text), kernel)


@pytest.mark.parametrize("name", ["kernel", "x.py:", "missing.py:kernel"])
def test_a_wrong_kernel_is_refused_in_a_sentence(name):
    with pytest.raises(UsageError):
        Candidate.named(name)


def test_a_constant_is_replaced_before_what_follows_from_it(kernel):
    module = load_module(kernel.path, (("ROWS", 32),))
    assert (module.ROWS, module.WIDE, module.DOUBLE) == (32, 512, 64)


def test_a_patch_changes_the_values_only(kernel):
    best = Candidate(kernel.path, "kernel", {"ROWS": 64, "parts": 2, "engine": "scalar"})
    text = patched_text(best)
    assert text == KERNEL.replace("128", "64").replace("= 1,", "= 2,").replace('"vector"', '"scalar"')
    patch = as_patch(kernel.path, text)
    assert patch.startswith("--- a/kernels.py\n+++ b/kernels.py\n")


def test_the_kernel_as_it_stands_needs_no_patch(kernel):
    same = Candidate(kernel.path, "kernel", {"ROWS": 128, "engine": "vector"})
    assert as_patch(kernel.path, patched_text(same)) == ""

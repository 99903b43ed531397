"""Errors of edited kernels, at their lines."""

from __future__ import annotations

import pytest

from neuron_profile.preview.problems import Problem, problem_of
from neuron_tools.nki.errors import NkiValidationError


def test_a_rule_names_the_line_of_the_edited_file() -> None:
    error = NkiValidationError("a tile is too large", "/w/kernel.py:12 in tile_of")
    assert problem_of(error, "/w/kernel.py") == Problem("/w/kernel.py", 12, "a tile is too large", "rule")


def test_a_rule_that_a_helper_breaks_stands_at_the_call_in_the_edited_file() -> None:
    where = "/lib/tiles.py:3 in tile (called from /w/kernel.py:20 in kernel)"
    assert problem_of(NkiValidationError("too large", where), "/w/kernel.py").line == 20


def test_other_errors_stand_at_the_innermost_line_of_the_file() -> None:
    code = compile("def f():\n    return 1 / 0\n\nf()\n", "/w/kernel.py", "exec")
    with pytest.raises(ZeroDivisionError) as raised:
        exec(code, {})
    found = problem_of(raised.value, "/w/kernel.py")
    assert (found.line, found.kind) == (2, "error")
    assert found.message == "ZeroDivisionError: division by zero"


def test_errors_of_syntax_are_marked_as_such() -> None:
    with pytest.raises(SyntaxError) as raised:
        compile("def f(:\n", "/w/kernel.py", "exec")
    assert problem_of(raised.value, "/w/kernel.py").kind == "syntax"


def test_an_error_elsewhere_has_no_line() -> None:
    assert problem_of(ValueError("no"), "/w/kernel.py") == Problem("", 0, "ValueError: no", "error")

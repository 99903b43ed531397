"""The walks through the code (`docs/walks.md`): every file and name exists, every step leads to the next."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.integration.project.checkout import ROOT

STEP = re.compile(r"^\| (\d+) \| `([^`]+)` \| `([^`]+)` \| [^|]+ \| (?:`([^`]+)`)? ?\|$", re.MULTILINE)
PAGE = (ROOT / "docs/walks.md").read_text("utf-8")
WALKS = {part.partition("\n")[0]: STEP.findall(part) for part in PAGE.split("\n## ")[1:]}


def python_text(source: str, name: str) -> str:
    """A function, class or constant of a module, with its decorators; "" where there is none."""
    for node in ast.walk(ast.parse(source)):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        names = [getattr(node, "name", None), *(getattr(target, "id", None) for target in targets)]
        if name in names and hasattr(node, "end_lineno"):
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            return "\n".join(source.splitlines()[first - 1 : node.end_lineno])
    return ""


def braced_text(source: str, name: str) -> str:
    """A function of a C++ or TypeScript file: from the line that defines it to the brace that closes it."""
    definition = re.compile(
        rf"^( *)(?:\S[^\n=;]*)?(?<![\w.]){name}\((?:[^;{{}}]|{{ ?[\w:, ]*}})*?\{{\n.*?^\1\}}", re.M | re.S
    )
    found = definition.search(source)
    return found.group() if found else ""


def text_of(file: str, name: str) -> str:
    source = (ROOT / file).read_text("utf-8")
    return python_text(source, name) if Path(file).suffix == ".py" else braced_text(source, name)


@pytest.mark.parametrize("walk", WALKS)
def test_every_step_exists_and_leads_to_the_next(walk):
    steps = WALKS[walk]
    assert [int(number) for number, *_ in steps] == list(range(1, len(steps) + 1)), "a row is no step"
    assert len(steps) >= 10
    texts = [text_of(file, name) for _, file, name, _ in steps]
    for (number, file, name, _), text in zip(steps, texts):
        assert text, f"step {number}: there is no {name} in {file}"
    for (number, file, name, word), here, then in zip(steps, texts, texts[1:]):
        for text, place in ((here, "it"), (then, "the next step")):
            assert re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text), (
                f"step {number}, {name} in {file}, hands on {word}, which does not stand in {place}"
            )


def test_a_step_that_is_gone_is_noticed():
    assert not python_text("def other(): pass", "gone")
    assert not braced_text("int other() {\n}\n", "gone")
    assert "there" in braced_text("int there() {\n  return 1;\n}\n", "there")

"""Reads the programs with a planted fault: each file stands for several cases, which differ in its constants.

In a program, `# rule: NAMES` names the rules that tell its fault, `# case: NAME=VALUE, ...` sets constants, a
line that ends with `# fault` is the planted one, `# mended: CODE` is what the line before it should be
(nothing, if there is no code), and `# added: CODE` is a line that only the mended twin has. Some examples are
such programs, too. Clean programs stand in a folder of their own and have cases only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

FOLDER = Path(__file__).parent / "programs"
EXAMPLES = tuple(
    Path(__file__).parents[2] / "examples" / "faults" / f"{name}.py"
    for name in ("dma_not_overlapped", "small_dma", "spill")
)
CLEAN_FOLDER = Path(__file__).parent / "clean"
_RULE = re.compile(r"^# rule: (.+)$", re.MULTILINE)
_CASE = re.compile(r"^# case: (.+)$", re.MULTILINE)
_MENDED = re.compile(r"(\s*)# mended: ?(.*)")
_ADDED = re.compile(r"(\s*)# added: (.*)")


@dataclass(frozen=True, slots=True)
class Case:
    """A program with a fault, and its twin without.

    Attributes:
        family: The file that it was made from.
        name: The family with the constants.
        rules: Rules that tell this fault; the first finding must be of one of them.
        line: Number of the planted line.
    """

    family: str
    name: str
    rules: tuple[str, ...]
    faulty: str
    mended: str
    line: int


@dataclass(frozen=True, slots=True)
class CleanCase:
    """A program that is written well.

    Attributes:
        family: The file that it was made from.
        name: The family with the constants.
    """

    family: str
    name: str
    text: str


AnyCase = TypeVar("AnyCase", Case, CleanCase)


def read_cases() -> tuple[Case, ...]:
    """All cases, family by family."""
    programs = sorted((*FOLDER.glob("*.py"), *EXAMPLES), key=lambda path: path.stem)
    return tuple(case for path in programs for case in _of_family(path))


def read_clean(folder: Path = CLEAN_FOLDER) -> tuple[CleanCase, ...]:
    """All clean programs, family by family."""
    return tuple(
        CleanCase(path.stem, f"{path.stem} ({constants})", text)
        for path in sorted(folder.glob("*.py"))
        for constants, text in _variants(path.read_text())
    )


def one_of_each(cases: tuple[AnyCase, ...]) -> tuple[AnyCase, ...]:
    """The first case of each family."""
    return tuple({case.family: case for case in reversed(cases)}.values())[::-1]


def _of_family(path: Path) -> Iterator[Case]:
    text = path.read_text()
    rule = _RULE.search(text)
    if rule is None:
        raise ValueError(f"{path} does not say which rule tells its fault: write `# rule: NAME`.")
    for constants, variant in _variants(text):
        yield _case(path.stem, tuple(rule[1].split()), variant, constants)


def _variants(text: str) -> Iterator[tuple[str, str]]:
    """The constants of each case of a program, and its text with them."""
    for constants in _CASE.findall(text):
        yield constants, with_constants(text, dict(each.split("=", 1) for each in constants.split(", ")))


def _case(family: str, rules: tuple[str, ...], text: str, constants: str) -> Case:
    line = 1 + next(number for number, line in enumerate(text.splitlines()) if line.endswith("# fault"))
    return Case(family, f"{family} ({constants})", rules, text, mended(text), line)


def with_constants(text: str, values: Mapping[str, str]) -> str:
    """The program with other values of its constants.

    Raises:
        ValueError: It has no such constant.
    """
    for name, value in values.items():
        text, found = re.subn(rf"^{name} = .*$", f"{name} = {value}", text, count=1, flags=re.MULTILINE)
        if not found:
            raise ValueError(
                f"There is no constant {name} to set: write `{name} = VALUE` on a line of its own."
            )
    return text


def mended(text: str) -> str:
    """The program without its fault; every line stays where it is."""
    lines: list[str] = []
    for line in text.splitlines():
        change, added = _MENDED.fullmatch(line), _ADDED.fullmatch(line)
        if change:
            lines[-1] = (change[1] + change[2]).rstrip()
        lines.append(added[1] + added[2] if added else "" if change else line)
    return "\n".join(lines) + "\n"

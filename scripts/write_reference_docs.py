"""Writes the generated parts of the reference pages: commands, tables, Python API, instructions.

python scripts/write_reference_docs.py           write them
python scripts/write_reference_docs.py --check   exit 1 and name the pages where they are out of date

Only what stands between `<!-- begin generated: NAME -->` and its end marker is replaced.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from neuron_tools.nki import isa
from neuron_tools.nki.isa.table import TABLE, Operand
from neuron_tools.profile.schema import ENUMS, TABLES, Field, TableSchema

DOCS = Path(__file__).resolve().parent.parent / "docs"
HELP_WIDTH = 100


def command_lines() -> dict[str, click.Command]:
    """Every command that the distribution installs, by name."""
    from neuron_explorer.cli import neuron_explorer
    from neuron_monitor.cli import neuron_monitor
    from neuron_monitor.ls_cli import neuron_ls
    from neuron_monitor.top_cli import neuron_top
    from neuron_profile.cli import neuron_profile
    from neuron_profile.parallel_compile_cli import NAME, parallel_compile

    return {
        "neuron-profile": neuron_profile,
        "neuron-explorer": neuron_explorer,
        NAME: parallel_compile,
        "neuron-monitor": neuron_monitor,
        "neuron-top": neuron_top,
        "neuron-ls": neuron_ls,
    }


def commands_text() -> str:
    """The help of every command and subcommand."""
    return "\n".join(section for name, command in command_lines().items() for section in _help(command, name))


def _help(command: click.Command, name: str, level: int = 2) -> Iterator[str]:
    settings = {**command.context_settings, "terminal_width": HELP_WIDTH, "max_content_width": HELP_WIDTH}
    context = click.Context(command, info_name=name, **settings)
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    yield f"{'#' * level} {name}\n\n```text\n{text}\n```\n"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from _help(found, f"{name} {child}", level + 1)


def tables_text() -> str:
    """Every table with its columns, then the enumerations."""
    published = [table for table in TABLES.values() if not table.is_extension]
    ours = [table for table in TABLES.values() if table.is_extension]
    parts = ["## Tables of the published schema\n", *map(_table, published)]
    if ours:
        parts += ["## Tables of our own\n", *map(_table, ours)]
    parts.append("## Enumerations\n")
    parts += [f"- `{name}`: {', '.join(f'`{value}`' for value in values)}" for name, values in ENUMS.items()]
    return "\n".join(parts) + "\n"


def _table(table: TableSchema) -> str:
    rows = "\n".join(map(_row, table.fields))
    head = "| column | type | unit | meaning |\n|---|---|---|---|"
    return f"### {table.name}\n\n{_cell(table.description)}\n\n{head}\n{rows}\n"


def _row(field: Field) -> str:
    name = f"`{field.name}`{' (ours)' if field.is_extension else ''}"
    kind = f"{field.type}{'' if field.required else '?'}"
    meaning = field.description + (f" One of `{field.enum}`." if field.enum else "")
    return f"| {name} | {kind} | {field.unit or ''} | {_cell(meaning)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def api_text() -> str:
    """What `neuron_tools` offers to a program: signatures and docstrings."""
    from neuron_tools.capture.inline import profile
    from neuron_tools.profile.reader import Profile, open_profile

    parts = [_object("neuron_tools.open_profile", open_profile), _object("neuron_tools.profile", profile)]
    parts += _methods("Profile", Profile)
    return "\n".join(parts)


def _methods(name: str, kind: type) -> Iterator[str]:
    """A class and its public methods, in the order in which they are written."""
    yield f"### {name}\n\n```text\n{inspect.getdoc(kind)}\n```\n"
    for method_name, method in vars(kind).items():
        if inspect.isfunction(method) and not method_name.startswith("_"):
            yield _object(f"{name}.{method_name}", method, level=4)


def _object(name: str, item: Callable[..., object], level: int = 3) -> str:
    # Postponed annotations stand in quotes, unlike the defaults behind them.
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(item)))
    signature = re.sub(r"^\(self(, )?", "(", signature)
    signature = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", signature)  # a default, by its name
    return f"{'#' * level} {name}\n\n```text\n{name}{signature}\n\n{inspect.getdoc(item)}\n```\n"


def instructions_text() -> str:
    """The instruction table of `nki.isa`: engines, operands, what must hold."""
    lines = ["| instruction | does | engines | writes | reads | since |", "|---|---|---|---|---|---|"]
    for name, record in sorted(TABLE.items()):
        if hasattr(isa, name):
            summary = (inspect.getdoc(getattr(isa, name)) or "").split("\n")[0].replace("|", "\\|")
            engines = ", ".join(engine.title for engine in record.engines) or "DMA"
            written = ", ".join(_operand(operand) for operand in record.operands if operand.written)
            read = ", ".join(_operand(operand) for operand in record.operands if not operand.written)
            lines.append(f"| `{name}` | {summary} | {engines} | {written} | {read} | v{record.since} |")
    return "\n".join(lines)


def _operand(operand: Operand) -> str:
    """An operand with the memories it may lie in: "`dst` (SBUF, PSUM)"; brackets where it may be left out."""
    text = f"`{operand.name}` ({', '.join(memory.name for memory in operand.memories)})"
    return f"[{text}]" if operand.optional else text


def public_kernels_text() -> str:
    """Counts of the cases of public repositories."""
    import public_record  # beside this script

    return public_record.table(public_record.read())


GENERATED: dict[str, tuple[str, Callable[[], str]]] = {
    "commands": ("commands.md", commands_text),
    "tables": ("profile-format.md", tables_text),
    "api": ("python-api.md", api_text),
    "instructions": ("nki.md", instructions_text),
    "public kernels": ("public-kernels.md", public_kernels_text),
}


def with_generated(page: str, name: str, text: str) -> str:
    """The page with what stands between the markers of `name` replaced.

    Raises:
        ValueError: The page has no such markers.
    """
    begin, end = f"<!-- begin generated: {name} -->", f"<!-- end generated: {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"The page lacks the markers {begin} and {end}.")
    return pattern.sub(lambda _: f"{begin}\n\n{text}\n{end}", page)


def main() -> int:
    """Write the pages, or compare them."""
    parser = argparse.ArgumentParser(description="Writes the generated parts of the reference pages.")
    parser.add_argument("--check", action="store_true", help="only tell which pages are out of date")
    check = parser.parse_args().check
    stale = []
    for name, (page_name, make) in GENERATED.items():
        page = DOCS / page_name
        old = page.read_text("utf-8")
        new = with_generated(old, name, make())
        if new != old:
            stale.append(page_name)
            if not check:
                page.write_text(new, "utf-8")
    for page_name in stale:
        print(f"{'out of date' if check else 'written'}: docs/{page_name}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

"""The frontier: of each source stack the innermost line of the user's own code.

Most device time is asked for by a user's line and spent in a library's. A stack keeps both: its innermost
frame is the exact line, and the innermost frame of the user's own code the frontier. What is the user's own
is decided here and nowhere else; everything that shows lines reads the view `Frontier`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from neuron_tools.frozen import frozen

TABLES = ("StackFrame", "StackFrameFileLocation", "StackFrameFileName", "StackFrameFunctionName")
"""Tables that the view is made of."""
VIEW = "Frontier"
"""Columns `stack_frame_id`, `source_file`, `source_line`, `function` and `is_own`; one row for each frame. A
stack without any line of the user's has its exact line, and is not own."""

OWN_CODE_VARIABLE = "NEURON_OWN_CODE"
_INSTALLED = r"(^|/)(site-packages|dist-packages)/|(^|/)lib(64)?/(python|pypy)3(\.\d+)?/"
_TYPED = r"^<(stdin|string|console|ipython-input.*)>$|/ipykernel_[0-9]+/[0-9]+\.py$"
"""What was typed: no folder has it, and it is nobody else's."""
_COMMAND = "<string>"
"""The file name of `python -c`, and of code made at run time, such as the methods of data classes: a frame of
the latter has a frame of another file above it."""
_STARTERS = r"/multiprocessing/(spawn|forkserver|resource_tracker)\.py$"
"""Python's files that such a command calls where Python itself wrote it, to start another process."""
_COMMAND_FOLDER = r"/bin/[^/]+$"
"""Where the small scripts stand that start an installed program."""
_PACKAGE_FOLDER = r"^.*/(site|dist)-packages/[^/]+"
_PACKAGE = str(Path(__file__).resolve().parents[2])


@frozen
class OwnCode:
    """Which files are the user's own.

    Attributes:
        folders: Folders of the user's code; what is installed below them (an environment of packages) is not.
            Empty: every file that is not installed.
    """

    folders: tuple[str, ...] = ()

    def condition(self, column: str, installed_in: str) -> str:
        """SQL that holds for the user's own files.

        Args:
            column: The file's path.
            installed_in: The folder into which it was installed where its path does not tell, or NULL.
        """
        inside = " OR ".join(_below(column, folder) for folder in self.folders)
        typed = f"regexp_matches({column}, {_literal(_TYPED)})"
        installed = self._installed(column, installed_in)
        if inside:
            return f"({typed} OR (({inside}) AND NOT {installed}))"
        ours = _below(column, _PACKAGE)
        named = f"({column} NOT LIKE '<%' OR {typed})"
        return f"({named} AND NOT {installed} AND NOT {ours})"

    def _installed(self, column: str, installed_in: str) -> str:
        """A package's file; where an own folder is itself installed, what counts is the path below it."""
        rest, above = column, f"coalesce({installed_in}, '')"
        for folder in self.folders:
            inside = _below(column, folder)
            below = f"substr({column}, {len(_folder(folder)) + 1})"
            rest = f"(CASE WHEN {inside} THEN {below} ELSE {rest} END)"
            is_above = f"starts_with({_literal(_folder(folder))}, {installed_in} || '/')"
            above = f"(CASE WHEN {inside} AND {is_above} THEN '' ELSE {above} END)"
        return f"(regexp_matches({rest}, {_literal(_INSTALLED)}) OR {above} <> '')"


def is_installed(file: str) -> bool:
    """Whether a file belongs to Python, to a package or to this one."""
    return re.search(_INSTALLED, file) is not None or file.startswith(_folder(_PACKAGE))


STACKS_THROUGH = """
WITH RECURSIVE here(id) AS (
    SELECT frame.id FROM StackFrame frame
    JOIN StackFrameFileLocation location ON location.id = CAST(frame.file_location_id AS VARCHAR)
    JOIN StackFrameFileName file ON file.id = CAST(location.file_name_id AS VARCHAR)
    WHERE file.name = ? AND location.line_number BETWEEN ? AND ?
    UNION
    SELECT frame.id FROM here JOIN StackFrame frame ON frame.parent_frame_id = here.id
)
SELECT id FROM here
"""
"""Ids of the stacks on which a line from `?` to `?` of the file `?` stands: what it does itself and calls."""


def own_code_of(environment: Mapping[str, str]) -> OwnCode:
    """What the environment says: folders in `NEURON_OWN_CODE`, as in `PATH`."""
    folders = environment.get(OWN_CODE_VARIABLE, "").split(os.pathsep)
    return OwnCode(tuple(os.path.abspath(folder) for folder in folders if folder))


def frontier_query(own: OwnCode) -> str:
    """SQL of the view. From the outermost frames inwards, each has its own line or that of its caller.

    A program may be installed itself: then the lines of its package are its user's, where the stack has no
    others and nobody said which folders are.
    """
    command = f"named.file = {_literal(_COMMAND)}"
    started = f"SELECT parent FROM named WHERE regexp_matches(file, {_literal(_STARTERS)})"
    is_own = f"named.own AND NOT ({command} AND named.id IN ({started})) AND named.id NOT IN (FROM launchers)"
    program = "''" if own.folders else f"coalesce({_PROGRAM}, '')"
    inside = "named.package = {0} AND {0} <> ''"
    now = f"CASE WHEN {program} <> '' THEN {program} ELSE walked.program END"
    return f"""
WITH RECURSIVE named AS (
    SELECT frame.id, coalesce(frame.parent_frame_id, '') AS parent, file.name AS file,
        location.line_number AS line, coalesce(function.name, '') AS function,
        {own.condition("file.name", "file.installed_in")} AS own, {_package("file")} AS package
    FROM StackFrame frame
    JOIN StackFrameFileLocation location ON location.id = CAST(frame.file_location_id AS VARCHAR)
    JOIN StackFrameFileName file ON file.id = CAST(location.file_name_id AS VARCHAR)
    LEFT JOIN StackFrameFunctionName function ON function.id = CAST(location.function_name_id AS VARCHAR)
), launchers AS (
    SELECT DISTINCT launcher.id FROM named launcher JOIN named started ON started.parent = launcher.id
    WHERE launcher.parent = '' AND regexp_matches(launcher.file, {_literal(_COMMAND_FOLDER)})
        AND {_installed_beside("started.package", "launcher.file")}
), walked(id, own_id, in_command, program, program_id) AS (
    SELECT id, CASE WHEN {is_own} THEN id END, {command}, {program},
        CASE WHEN {inside.format(program)} THEN id END
    FROM named WHERE parent = ''
    UNION ALL
    SELECT named.id,
        CASE WHEN {is_own} AND (walked.in_command OR NOT {command}) THEN named.id ELSE walked.own_id END,
        walked.in_command AND {command}, {now},
        CASE WHEN {inside.format(f"({now})")} THEN named.id ELSE walked.program_id END
    FROM walked JOIN named ON named.parent = walked.id
), lines AS (SELECT id, coalesce(own_id, program_id) AS own_id FROM walked)
SELECT lines.id AS stack_frame_id, named.file AS source_file, CAST(named.line AS INTEGER) AS source_line,
    named.function AS function, lines.own_id IS NOT NULL AS is_own
FROM lines JOIN named ON named.id = coalesce(lines.own_id, lines.id)
"""


_PROGRAM = """
CASE WHEN named.function = '<module>' OR named.parent IN (FROM launchers) THEN named.package END
"""
"""The package that begins to run as a program in a frame, or NULL: what Python runs as a module, and what a
small script starts."""


def _package(file: str) -> str:
    """SQL of the package, or single module, that a file was installed with; '' of others."""
    name, folder = f"{file}.name", f"{file}.installed_in"
    first = f"regexp_extract(substr({name}, length({folder}) + 1), '^/[^/]+')"
    return f"coalesce({folder} || {first}, regexp_extract({name}, {_literal(_PACKAGE_FOLDER)}))"


def _installed_beside(package: str, script: str) -> str:
    """SQL that holds where a package was installed into the same environment as a script of its `bin`."""
    prefix = f"regexp_replace({script}, {_literal(_COMMAND_FOLDER)}, '/')"
    folder = f"regexp_replace({package}, '[^/]+$', '')"
    return f"(starts_with({package}, {prefix} || 'lib') OR {folder} = {prefix})"


def _below(column: str, folder: str) -> str:
    return f"starts_with({column}, {_literal(_folder(folder))})"


def _folder(folder: str) -> str:
    return folder.rstrip("/") + "/"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

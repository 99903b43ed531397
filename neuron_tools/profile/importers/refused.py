"""Files that are known and cannot be read: what each is, and what to import in its place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.trace_file import TraceFile

_SESSION = (
    "write a profile of the session with AWS's `neuron-explorer view -n FILE.neff -s FILE.ntff "
    "--output-format parquet` and import its folder."
)
_WHOLE_SESSION = (
    "write a profile of the session with AWS's `neuron-explorer view -d FOLDER --output-format parquet` and "
    "import what that makes."
)
_UNPACK = "unpack it and import the trace in it; files packed with gzip are read as they are."
_PY_SPY = "record with `py-spy record --format speedscope` and import that."


class _Refused(NamedTuple):
    """A kind of file: what it is, what to do, and how it begins or what its name ends with."""

    what: str
    advice: str
    beginning: bytes = rb"(?!)"
    name: str = r"(?!)"


_FOLDED = rb"[^\n;{}<>]{1,400}(?:;[^\n;]{1,400}){1,400} \d+\r?\n"
_KINDS = (
    _Refused(
        "a raw trace of a Neuron device (NTFF), whose layout is not published", _SESSION, name=r"\.ntff$"
    ),
    _Refused(
        "a compiled model (NEFF), no trace of it",
        "import the profile of a run; `neuron-profile view -n FILE.neff` shows what it would take.",
        name=r"\.neff$",
    ),
    _Refused(
        "a part of a session of Neuron's runtime, whose layout is not published",
        _WHOLE_SESSION,
        name=r"^(ntrace|trace_info|cpu_util|host_mem)\.pb$",
    ),
    _Refused(
        "a report of Nsight Systems",
        "write it as a database with `nsys export --type sqlite`.",
        name=r"\.(nsys-rep|qdrep)$",
    ),
    _Refused(
        "a report of Nsight Compute, which has kernels without their times",
        "record a trace with `nsys profile` and import what `nsys export --type sqlite` writes.",
        name=r"\.ncu-rep$",
    ),
    _Refused(
        "a part of an OTF2 archive",
        "let the tool write pftrace or rocpd (`rocprofv3 --output-format rocpd`).",
        name=r"\.(otf2|def|evt)$",
    ),
    _Refused(
        "a CPU profile of gperftools in its older format",
        "write it as pprof with `pprof -proto PROGRAM FILE` and import that.",
        beginning=rb"(?:\0{8}\x03\0{7}\0{8}.{8}\0{8})|(?:\0{4}\x03\0{3}\0{4}.{4}\0{4})",
    ),
    _Refused(
        "a recording of perf",
        "write it as pprof with `perf_to_profile` and import that.",
        beginning=rb"PERFILE2",
    ),
    _Refused(
        "a profile of cProfile, which has sums of functions and no stacks",
        _PY_SPY,
        beginning=rb"[\x7b\xfb][\x28\x29\xa8\xa9]",
    ),
    _Refused(
        "a profile of Callgrind, which has counts and no times",
        _PY_SPY,
        beginning=rb"(?:# callgrind format|version: 1\r?\ncreator:)",
    ),
    _Refused("stacks folded to lines", _PY_SPY, beginning=_FOLDED),
    _Refused("a recording of Memray", "show it with `memray flamegraph`.", beginning=rb"memray\0"),
    _Refused("one Parquet table", "name the folder that holds it and the others.", beginning=rb"PAR1"),
    _Refused(
        "an Arrow file", "export the trace in the format of the tool that made it.", beginning=rb"ARROW1"
    ),
    _Refused("a zip archive", _UNPACK, beginning=rb"PK\x03\x04"),
    _Refused("packed with xz", _UNPACK, beginning=rb"\xfd7zXZ\0"),
    _Refused("packed with bzip2", _UNPACK, beginning=rb"BZh[1-9]1AY&SY"),
    _Refused("packed with Zstandard", _UNPACK, beginning=rb"\x28\xb5\x2f\xfd"),
    _Refused("a program", "import the trace of a run of it.", rb"\x7fELF"),
    _Refused("a web page", "import the trace that it was made from.", rb"(?i:<!doctype html|<html)"),
)
_MOST_KEYS = 4


def refusal(file: TraceFile) -> str | None:
    """One sentence on a file of a kind that is known and not read; None for one that is not known.

    The content says what it is; where no layout is published, the name has to.
    """
    head = Head.of(file)
    for kind in _KINDS:
        is_named = re.search(kind.name, file.path.name) is not None
        if is_named or re.match(kind.beginning, head.text or head.content, re.DOTALL):
            return f"{file.path} is {kind.what}: {kind.advice}"
    if head.is_json and head.json_keys:
        names = ", ".join(ascii(name[:40])[1:-1] for name in sorted(head.json_keys)[:_MOST_KEYS])
        return f"{file.path} is in no known format: it is JSON whose first keys are {names}."
    return None


def folder_refusal(folder: Path) -> str:
    """One sentence on a folder without tables."""
    names = [path.name for path in folder.iterdir()]
    if any(name.endswith(".ntff") or name in ("ntrace.pb", "trace_info.pb") for name in names):
        return f"{folder} is a session of Neuron's runtime, whose layout is not published: {_WHOLE_SESSION}"
    return f"{folder} is a folder without Parquet tables: name its trace files one by one."

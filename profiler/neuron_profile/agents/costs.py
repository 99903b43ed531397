"""Where device time goes, as an agent asks for it: by operator, module or line, and lines with text."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.agents.answer import Json, share
from neuron_profile.analysis.hotspots import Cost, Hotspots, ModuleNode, find_hotspots
from neuron_profile.analysis.kernel_charges import find_kernel_lines
from neuron_profile.analysis.line_times import LineTimes
from neuron_profile.analysis.source_frames import SourceLine, SourceTexts
from neuron_tools.errors import UsageError
from neuron_tools.profile.reader import Profile

LEVELS = ("operator", "module", "line", "kernel-line")
LONGEST_LINE = 200
MOST_LINES = 80


def hotspots(profile: Profile, level: str, limit: int) -> Json:
    """The places of one level with most device time.

    Raises:
        UsageError: There is no such level.
    """
    if level not in LEVELS:
        raise UsageError(f"There is no level {level!r}: ask for {', '.join(LEVELS)}.")
    found = find_hotspots(profile)
    rows = list(_rows(profile, found, level))
    return {
        "device_ns": round(found.device_ns),
        "level": level,
        "rows": rows[:limit],
        "left_out": max(0, len(rows) - limit),
    }


def lines(profile: Profile, file: str, first: int, last: int) -> Json:
    """The lines of a source file that the profile keeps, each with its device time.

    Args:
        file: The path, or its end.
        last: The last line; 0 = as many as fit.

    Raises:
        UsageError: The profile knows no such file, or several.
    """
    texts = SourceTexts(profile)
    path = _file(texts, file)
    found = find_hotspots(profile)
    times = LineTimes.of(found, find_kernel_lines(profile), path).shown
    text = texts.lines(path)
    first = max(1, first)
    until = min(last or len(text), first + MOST_LINES - 1, len(text))
    rows = [
        _numbered(number, text[number - 1], times.get(number, 0.0), found.device_ns)
        for number in range(first, until + 1)
    ]
    kept = {} if text else {"note": "The profile does not keep the text of this file."}
    return {"file": path, "lines_in_file": len(text), "rows": rows, **kept}


def _numbered(number: int, text: str, device_ns: float, whole_ns: float) -> Json:
    row: Json = {"line": number, "text": text[:LONGEST_LINE]}
    return {**row, "device_ns": round(device_ns), "share": share(device_ns, whole_ns)} if device_ns else row


def _file(texts: SourceTexts, wanted: str) -> str:
    files = texts.files()
    found = [path for path in files if path == wanted] or [
        path for path in files if path.endswith("/" + wanted.lstrip("/"))
    ]
    if len(found) == 1:
        return found[0]
    known = ", ".join(found or files[:20])
    reason = "several files end so" if found else "the profile lists no such file"
    raise UsageError(f"{wanted!r} cannot be shown: {reason}. Name one of: {known}.")


def _rows(profile: Profile, found: Hotspots, level: str) -> Iterator[Json]:
    if level == "operator":
        for operation in found.operations:
            yield {"operator": operation.name, **_cost(operation.cost, found)}
    elif level == "module":
        for module in sorted(_modules(found.modules), key=lambda node: (-node.cost.device_ns, node.path)):
            yield {"module": module.path, **_cost(module.cost, found), "own_ns": round(module.own_ns)}
    elif level == "line":
        texts = SourceTexts(profile)
        for line in found.lines:
            yield _line(line.place, line.function, texts) | _cost(line.cost, found)
    else:
        texts = SourceTexts(profile)
        for row in find_kernel_lines(profile):
            cost = {"device_ns": round(row.device_ns), "share": share(row.device_ns, found.device_ns)}
            yield _line(row.place, row.function, texts) | cost


def _line(place: SourceLine, function: str, texts: SourceTexts) -> Json:
    return {
        "file": place.file,
        "line": place.line,
        "function": function,
        "text": texts.line(place)[:LONGEST_LINE],
    }


def _modules(node: ModuleNode) -> Iterator[ModuleNode]:
    """The modules inside, without the root, which is the whole program."""
    for child in node.children:
        yield child
        yield from _modules(child)


def _cost(cost: Cost, found: Hotspots) -> Json:
    parts = {"device_ns": round(cost.device_ns), "share": share(cost.device_ns, found.device_ns)}
    backward = {"backward_ns": round(cost.backward_ns)} if cost.backward_ns else {}
    return {**parts, **backward, "count": cost.count}

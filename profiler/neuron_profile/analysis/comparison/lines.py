"""Which lines of the user's own code take more or less device time than before.

A line is followed from the base profile to the new one by the texts that both keep; where they keep none,
by its number. The differences of all lines, and that of what has none, add up to that of the device times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import PurePath

from neuron_profile.analysis.own_lines import load_own_lines
from neuron_profile.analysis.source_frames import SourceLine, SourceTexts
from neuron_profile.analysis.time.charges import Charges
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

LineTimes = Mapping[SourceLine, float]
NO_LINE = SourceLine("", 0)
"""What has no source line."""
LONGEST_TEXT = 20_000
"""Lines of a longer file are taken to stand where they stood."""


@frozen
class LineDelta:
    """A line in both profiles; times in ns.

    Attributes:
        place: Where it is in the new profile, or was in the base where it is gone.
        base_line: Its number in the base profile; 0 where it is new.
        text: The line without its indentation; "" where no profile keeps it.
    """

    place: SourceLine
    base_line: int
    base_ns: int
    new_ns: int
    text: str = ""

    @property
    def delta_ns(self) -> int:
        """New minus base."""
        return self.new_ns - self.base_ns


def times_of_own_lines(profile: Profile, charges: Charges) -> LineTimes:
    """Device time by the user's own line; by the exact one where a stack has none of the user's."""
    own = load_own_lines(profile)
    times: defaultdict[SourceLine, float] = defaultdict(float)
    for charge in charges.charges:
        found = own.get(charge.origin.stack)
        times[NO_LINE if found is None else found.place] += charge.device_ns
    times[NO_LINE] += charges.unattributed_ns
    return times


def line_deltas(
    base: LineTimes, new: LineTimes, base_texts: SourceTexts, new_texts: SourceTexts
) -> tuple[LineDelta, ...]:
    """Lines of both by falling difference; those that take as long as before are left out."""
    followed = _follow(base, new, base_texts, new_texts)
    before: defaultdict[SourceLine, float] = defaultdict(float)
    numbers: dict[SourceLine, int] = {}
    gone: list[LineDelta] = []
    for line, base_ns in base.items():
        place = followed.get(line)
        if place is None:
            gone.append(LineDelta(line, line.line, round(base_ns), 0, base_texts.line(line)))
        else:
            before[place] += base_ns
            numbers[place] = line.line
    kept = [
        LineDelta(
            place,
            numbers.get(place, 0),
            round(before[place]),
            round(new.get(place, 0)),
            new_texts.line(place),
        )
        for place in {**before, **new}
        if place != NO_LINE
    ]
    changed = [delta for delta in (*kept, *gone) if delta.delta_ns and delta.place != NO_LINE]
    return tuple(sorted(changed, key=lambda delta: (-abs(delta.delta_ns), delta.place)))


def _follow(
    base: LineTimes, new: LineTimes, base_texts: SourceTexts, new_texts: SourceTexts
) -> dict[SourceLine, SourceLine]:
    """Where each line of the base profile is in the new one; lines that are gone are left out."""
    files = _same_files({line.file for line in base}, {line.file for line in new} | set(new_texts.files()))
    places: dict[str, Sequence[int] | None] = {
        file: _places(base_texts.lines(file), new_texts.lines(other)) for file, other in files.items()
    }
    followed = {}
    for line in base:
        if line.file not in files:
            continue
        where = places[line.file]
        number = line.line if where is None or not 0 < line.line <= len(where) else where[line.line - 1]
        if number:
            followed[line] = SourceLine(files[line.file], number)
    return followed


def _same_files(base: set[str], new: set[str]) -> dict[str, str]:
    """Each file of the base profile and what it is in the new one: by path, else by its name."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for file in new:
        names[PurePath(file).name].append(file)
    same = {file: file for file in base & new}
    for file in base - new:
        found = names[PurePath(file).name]
        if len(found) == 1 and found[0] not in base:
            same[file] = found[0]
    return same


def _places(before: Sequence[str], now: Sequence[str]) -> Sequence[int] | None:
    """The number that each line has now, 0 where it is gone; None where they stand as they stood."""
    if not before or not now or before == now or max(len(before), len(now)) > LONGEST_TEXT:
        return None
    places = [0] * len(before)
    for block in SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            places[block.a + step] = block.b + step + 1
    return places

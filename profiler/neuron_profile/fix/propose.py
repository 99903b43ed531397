"""Finds the edit for a finding: the file it is about, how it was reached, and the editor of its rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.hotspots import find_hotspots
from neuron_profile.analysis.source_frames import SourceTexts, load_frames, stack
from neuron_profile.fix.proposal import Edit, Proposal, Request, Site
from neuron_tools.doors import Door
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.profile.reader import Profile

_MODULES = {
    "host_synchronisation": "synchronisation",
    "repeated_copies": "hoist",
    "layout_copies": "hoist",
    "dtype_round_trips": "casts",
    "recomputation": "hoist",
    "unused_outputs": "leave_out",
    "unfused_updates": "foreach",
    "tiny_batches": "batched",
    "unfused_attention": "attention",
    "frozen_gradients": "freeze",
    "upcast_products": "upcasts",
    "fp32_matmul": "autocast",
    "recompilation": "recompilation",
    "missing_jit": "jit",
    "tiny_operations": "compile_model",
    "host_bound": "compile_model",
    "repeated_loads": "kernel_loads",
    "dma_not_overlapped": "kernel_buffers",
    "engine_imbalance": "kernel_engine",
}
EDITORS = Door(
    "neuron_profile.fixes",
    "editor",
    tuple((finding, f"neuron_profile.fix.edits.{module}:edit") for finding, module in _MODULES.items()),
)
"""By rule, each an `Editor`."""
Editor = Callable[[Request], "Edit | None"]


class NoEditError(NeuronToolsError):
    """No edit can be derived; the sentence says why."""


def propose(profile: Profile, finding: Finding) -> Proposal:
    """The edit that mends a finding.

    Raises:
        NoEditError: None can be derived, or the file is not what was captured.
    """
    _require_editor(finding)
    path = Path(finding.place.file)
    return _propose(profile, finding, path, _text(profile, path))


def propose_for_kept(profile: Profile, finding: Finding) -> Proposal:
    """The same for the text that the profile keeps: no file of this machine is looked at.

    Raises:
        NoEditError: None can be derived, or the profile keeps no text of the file.
    """
    _require_editor(finding)
    text = SourceTexts(profile).text(finding.place.file)
    if text is None:
        raise NoEditError("The profile does not keep the file's text, so no edit can be derived.")
    return _propose(profile, finding, Path(finding.place.file), text)


def _require_editor(finding: Finding) -> None:
    if finding.rule not in EDITORS.names():
        raise NoEditError(f"No edit can be derived for {finding.rule}: {finding.change}")


def _propose(profile: Profile, finding: Finding, path: Path, text: str) -> Proposal:
    sites = tuple(_sites(profile, finding))
    editor: Editor = EDITORS.load(finding.rule)
    edit = editor(Request(finding, text, sites))
    if edit is None or edit.text == text:
        raise NoEditError(
            f"No edit can be derived at {path.name}:{finding.place.line}, which is written otherwise than "
            f"the editor of {finding.rule} knows: {finding.change}"
        )
    return Proposal(finding, path, text, edit)


def choose_for_kept(profile: Profile, findings: Sequence[Finding], number: str) -> Proposal:
    """The edit of a finding, for the text that the profile keeps.

    Args:
        number: Of the finding, counted from 1, as an address says it.

    Raises:
        UsageError: There is no such finding.
        NoEditError: No edit can be derived.
    """
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:9]) <= len(findings)):
        raise UsageError(f"There is no finding {number[:9]}: the advice has {len(findings)}.")
    try:
        return propose_for_kept(profile, findings[int(number) - 1])
    except ModuleNotFoundError as error:
        raise NoEditError('Edits need LibCST: pip install "neuron-tools[fix]".') from error


def choose(profile: Profile, findings: Sequence[Finding], number: int | None) -> tuple[int, Proposal]:
    """The number of a finding and its edit; without a number, those of the first that an edit mends.

    Raises:
        UsageError: There is no such finding.
        NoEditError: No edit can be derived.
    """
    if number is not None:
        if number > len(findings):
            raise UsageError(f"There is no finding {number}: the advice has {len(findings)}.")
        return number, propose(profile, findings[number - 1])
    reasons = []
    for position, finding in enumerate(findings, 1):
        try:
            return position, propose(profile, finding)
        except NoEditError as error:
            reasons.append(str(error))
    raise NoEditError(reasons[0] if reasons else "Nothing was found that would make the program faster.")


def _text(profile: Profile, path: Path) -> str:
    """The file's text, which must be the one that ran."""
    kept = SourceTexts(profile).lines(str(path))
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise NoEditError(f"{path} cannot be read: edit where the program was captured.") from error
    if text.splitlines() != kept:  # what a profile does not know by itself is not edited, nor shown
        raise NoEditError(f"{path} is not as it was when it was captured: capture it again.")
    return text


def _sites(profile: Profile, finding: Finding) -> Iterator[Site]:
    """The frames in the finding's file through which most of the device time at its line was reached."""
    place, frames = finding.place, load_frames(profile)
    times: dict[str, float] = {}
    for charge in find_hotspots(profile).charges:
        leaf = charge.origin.stack
        if any((frame.file, frame.line) == (place.file, place.line) for frame in stack(frames, leaf)):
            times[leaf] = times.get(leaf, 0.0) + charge.device_ns
    if times:
        for frame in stack(frames, max(times, key=lambda leaf: (times[leaf], leaf))):
            if frame.file == place.file:
                yield Site(frame.file, frame.line, frame.function)

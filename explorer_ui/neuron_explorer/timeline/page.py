"""The page Timeline: the component over the whole window, its state in the browser's address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dash import html

from neuron_explorer.address import SCOPE, WHOLE, Address
from neuron_explorer.compared import COMPARE, asked_profiles, lacks_profiles, names_of
from neuron_explorer.page import Ahead, Page, View
from neuron_explorer.parts.states import empty_state
from neuron_explorer.steps import opening_ns, step_of, typical_step
from neuron_explorer.timeline.component import NeuronTimeline
from neuron_profile.analysis.time.steps import Step

LISTS = ("pinned", "collapsed", "expanded")
RECORDS = ("span", "highlight", "markers", "selection")
MOST_ENTRIES = 500
MARGIN_PARTS = 50
"""What is seen on either side of a device's work, as a part of it: one of so many."""
BUNDLE = Path(__file__).parent / "static" / "neuron_timeline.js"
MISSING = "A profile to compare with is not open here: start neuron-explorer with it as well."
NOT_BUILT = "The timeline is not built: run 'scripts/front_ends.sh timeline' in the checkout, and start anew."


def timeline_page(view: View) -> Any:
    """The timeline of the profile that the address names, as the address says."""
    if not BUNDLE.is_file():
        return empty_state(NOT_BUILT)
    timeline = _timeline(view)
    if not lacks_profiles(view, COMPARE):
        return html.Div(timeline, style={"height": "100%"})
    told = html.P(MISSING, role="status", style={"padding": "6px 8px"})
    timeline.style = {"flex": "1", "minHeight": 0}
    column = {"height": "100%", "display": "flex", "flexDirection": "column"}
    return html.Div([told, timeline], style=column)


def timeline_ahead(view: View) -> Ahead | None:
    """The timeline of the page, where it is a profile's alone."""
    is_alone = BUNDLE.is_file() and not view.address.get(COMPARE)
    return Ahead(_timeline(view)) if is_alone else None


def _timeline(view: View) -> NeuronTimeline:
    address = _with_device_work(view)
    timeline: NeuronTimeline = NeuronTimeline(
        id="timeline",
        profile=address.profile,
        theme=view.theme.name,
        **_tied(view, address),
        data_url=f"{address.root}/data/",
        style={"height": "100%"},
        scope=view.range_ns and list(view.range_ns),
        compare=_compared(view),
        **timeline_state(address),
    )
    return timeline


def _tied(view: View, address: Address) -> dict[str, Any]:
    """How the timeline is tied to the address: by itself, but in a panel by the workspace around it."""
    if view.is_panel:
        return {"writes_address": False}
    return {"writes_address": True, "source_address": _source_address(address)}


def _compared(view: View) -> list[dict[str, Any]]:
    """The profiles below the first: their steps begin where its own does, where both have steps."""
    others = asked_profiles(view, COMPARE)
    here = step_of(view.address, view.analyses) if others else None
    return [
        {"profile": one, "name": name, "shift_ns": _shift_ns(here, typical_step(one, view.analyses))}
        for one, name in names_of(view, others).items()
    ]


def _shift_ns(here: Step | None, there: Step | None) -> int | None:
    """How much later another profile's step begins than this one's."""
    return None if here is None or there is None else there.begin_ns - here.begin_ns


def _with_device_work(view: View) -> Address:
    """The address, with the time in which a device worked where it names no range."""
    address = view.address
    opening = None if address.get(SCOPE) == WHOLE else opening_ns(address, view.analyses)
    if address.start_ns is not None or opening is None:
        return address
    begin_ns, end_ns = with_margin(*opening)
    return replace(address, start_ns=begin_ns, end_ns=end_ns)


def with_margin(begin_ns: int, end_ns: int) -> tuple[int, int]:
    """A range with a little of what lies on either side of it."""
    margin = max(1, (end_ns - begin_ns) // MARGIN_PARTS)
    return max(0, begin_ns - margin), end_ns + margin


def timeline_state(address: Address) -> dict[str, Any]:
    """The properties of the component that an address asks for; what makes no sense is left out."""
    state: dict[str, Any] = {}
    if address.start_ns is not None and address.end_ns is not None:
        state["range"] = [address.start_ns, address.end_ns]
    for name in LISTS:
        value = _parsed(address.get(name))
        if isinstance(value, list):
            state[name] = [entry for entry in value if isinstance(entry, str)][:MOST_ENTRIES]
    for name in RECORDS:
        value = _parsed(address.get(name))
        if _is_record(name, value):
            state[name] = value
    if address.get("search"):
        state["search"] = address.get("search")
    if address.get("group"):
        state["grouping"] = address.get("group")
    return state


def _source_address(address: Address) -> str:
    """The address of a line's source; the component puts file and line in the place of the braces."""
    return f"{address.root}/source?profile={quote(address.profile)}&file={{file}}&line={{line}}"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


_FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "span": {"track": str, "row": int, "startNs": (int, float), "durationNs": (int, float), "name": str},
    "highlight": {"by": str, "value": str},
    "markers": {"timeNs": (int, float), "text": str},
}


def _is_record(name: str, value: Any) -> bool:
    """Whether a value from an address has the form of a property."""
    if name == "selection":
        return isinstance(value, list) and len(value) == 2 and all(isinstance(x, int | float) for x in value)
    if name == "markers":
        return (
            isinstance(value, list) and len(value) <= MOST_ENTRIES and all(_fits(name, one) for one in value)
        )
    return _fits(name, value)


def _fits(name: str, value: Any) -> bool:
    fields = _FIELDS[name]
    return isinstance(value, dict) and all(isinstance(value.get(key), kind) for key, kind in fields.items())


PAGE = Page(
    "/timeline",
    "Timeline",
    timeline_page,
    group="Where time goes",
    fills_window=True,
    ahead=timeline_ahead,
)

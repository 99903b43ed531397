"""`NeuronTimeline`: the timeline as a Dash component, for the Explorer and for any other Dash application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dash.development.base_component import Component, _explicitize_args

import neuron_explorer
from neuron_tools.errors import NeuronToolsError


class BundleMissingError(NeuronToolsError):
    """The script of the component was not built."""


class NeuronTimeline(Component):
    """A timeline of a profile. Properties are the state of the view only; data comes by binary HTTP routes.

    The server must have those routes: `neuron_explorer.timeline.register(app.server, library)`.
    Times are ns from the profile's start.

    Args:
        id: Id of the component.
        profile: Id of the profile in the library.
        compare: Profiles shown below the first, aligned by hierarchy: the id of one, or a list of ids or of
            `{"profile", "name", "shift_ns"}`. The shift is how much later, in ns, its time is at the
            same point of the axis; without one, both begin there.
        data_url: Where the routes stand; "/data/" by default.
        range: `[start_ns, end_ns]` in sight; None = all. Changes when the user has moved.
        selection: Chosen range, `[start_ns, end_ns]`.
        span: Chosen span: `{"track", "row", "startNs", "durationNs", "name"}`.
        pinned: Ids of tracks at the top.
        collapsed, expanded: Ids of tracks and headings that were closed, and opened.
        highlight: What is lit up on all tracks: `{"by": column, "value": text}`.
        markers: Notes: `{"timeNs", "text"}`.
        search: Text or `column=value` that is searched.
        grouping: What tracks stand under: "process", "core", "engine", "thread", "rank" or "host".
        scope: Range that findings on the timeline are simulated for, `[start_ns, end_ns]`; None = all.
        theme: "light", "dark" or "system".
        painter: "auto", "webgl2" or "canvas2d".
        writes_address: Whether the page's address follows the view, so that a link reproduces it.
        source_address: Where the source of a span is shown: an address with `{file}` and `{line}` in it.
        chrome: Whether search, buttons and details are shown.
        details: Read only: columns of the chosen span's row.
        source: Read only: `{"file", "line"}` of the chosen span.
        open_source: Read only: `{"file", "line"}` that the user asked to see.
        className, style: Of the element; give it a height.

    Raises:
        BundleMissingError: The component's script was not built.
    """

    _children_props: ClassVar[list[str]] = []
    _base_nodes: ClassVar[list[str]] = ["children"]
    _namespace = "neuron_timeline"
    _type = "NeuronTimeline"

    @_explicitize_args
    def __init__(
        self,
        id: str | Mapping[str, Any] | None = None,
        profile: str | None = None,
        compare: str | Sequence[str | Mapping[str, Any]] | None = None,
        data_url: str | None = None,
        range: Sequence[float] | None = None,
        selection: Sequence[float] | None = None,
        span: Mapping[str, Any] | None = None,
        pinned: Sequence[str] | None = None,
        collapsed: Sequence[str] | None = None,
        expanded: Sequence[str] | None = None,
        highlight: Mapping[str, str] | None = None,
        markers: Sequence[Mapping[str, Any]] | None = None,
        search: str | None = None,
        grouping: str | None = None,
        scope: Sequence[float] | None = None,
        theme: str | None = None,
        painter: str | None = None,
        chrome: bool | None = None,
        writes_address: bool | None = None,
        source_address: str | None = None,
        details: Mapping[str, Any] | None = None,
        source: Mapping[str, Any] | None = None,
        open_source: Mapping[str, Any] | None = None,
        className: str | None = None,
        style: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if not neuron_explorer._js_dist:
            raise BundleMissingError("The timeline's script is not built: run `make` in the project folder.")
        self._prop_names = list(PROPERTIES)
        self.available_properties = list(PROPERTIES)
        self._valid_wildcard_attributes: list[str] = []
        self.available_wildcard_properties: list[str] = []
        given = kwargs.pop("_explicit_args")
        values = {**locals(), **kwargs}
        super().__init__(**{name: values[name] for name in given})


PROPERTIES = (
    "id", "profile", "compare", "data_url", "range", "selection", "span", "pinned",
    "collapsed", "expanded", "highlight", "markers", "search", "grouping", "scope", "theme", "painter",
    "chrome", "writes_address", "source_address", "details", "source", "open_source", "className", "style",
)  # fmt: skip

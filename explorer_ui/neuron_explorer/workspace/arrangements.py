"""The made arrangements of the workspace's panels.

A layout is a text that fits an address: `60:(64:timeline*.operators;36:roofline);40:source.advice*` are two
columns of 60 and 40 percent; brackets divide a part the other way, dots separate the tabs of one place, a
star marks the tab in front.
"""

from __future__ import annotations

from neuron_tools.frozen import frozen


@frozen
class Arrangement:
    """A question, and the panels that answer it."""

    name: str
    title: str
    layout: str


ARRANGEMENTS = (
    Arrangement(
        "where",
        "Where does time go",
        "60:(62:timeline*.hierarchy.regions.communication;"
        "38:(62:operators*.overview.tensors;38:roofline*.memory.query));"
        "40:(52:source;48:advice*.details)",
    ),
    Arrangement(
        "kernel",
        "Kernel",
        "54:(58:source;42:timeline);46:(36:compiled;64:(52:memory*.tensors.operators;48:advice*.details.roofline))",
    ),
    Arrangement(
        "ranks",
        "Many ranks",
        "58:(60:timeline;40:communication*.operators);42:(50:advice*.overview;50:source*.details)",
    ),
    Arrangement(
        "compare",
        "Compare",
        "60:(58:timeline*.hierarchy;42:diff);40:(60:source*.operators;40:advice*.details)",
    ),
)
"""The first one is what a profile opens with."""


def arrangement_named(name: str) -> Arrangement:
    """The arrangement of a name; the first one where there is none."""
    return next((one for one in ARRANGEMENTS if one.name == name), ARRANGEMENTS[0])

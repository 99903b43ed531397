"""What stands on the parts of an icicle."""

from neuron_explorer.figures.icicle import IciclePart, icicle_figure
from neuron_explorer.theme import LIGHT

LONG = "_MultiProcessingDataLoaderIter._shutdown_workers"


def chain(columns: int, time_ns: float = 1e6) -> list[IciclePart]:
    named = [IciclePart(place, f"{LONG} · a<b>.py:1654", time_ns) for place in range(columns - 1)]
    return [IciclePart(-1, "all threads", 1e6), *named]


def shown(parts: list[IciclePart], depth: int) -> list[str]:
    drawn = icicle_figure(parts, LIGHT, depth).to_plotly_json()["data"][0]
    return [label for _, label in drawn["customdata"]]


def test_text_is_cut_to_its_column() -> None:
    narrow, wide = (shown(chain(columns), 9)[1].split("<br>") for columns in (9, 2))
    assert max(map(len, narrow)) <= len("_MultiProcessingDa")
    assert narrow[2] == "1.00 ms · 100.0 %"
    assert wide == [LONG, "a&lt;b&gt;.py:1654", "1.00 ms · 100.0 %"]


def test_a_low_part_has_its_name_only() -> None:
    assert shown(chain(2, time_ns=5e4), 9)[1] == LONG

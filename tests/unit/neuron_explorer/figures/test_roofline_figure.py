"""Names on the roofline: beside the side with room, and in a panel fewer and shorter."""

from neuron_explorer.figures.roofline import PANEL_LABEL, roofline_figure
from neuron_explorer.theme import LIGHT
from neuron_profile.analysis.roofline import Point, Roofline

BANDWIDTH = 1e12
LONG = "aten::_scaled_dot_product_fused_attention"


def point(name, intensity, charged_ns):
    flops = 10**9
    return Point(name, flops, round(flops / intensity), 0, 0, charged_ns, "HBM", 0.5)


def figure(is_panel, *more):
    points = (point("aten::mm", 100, 1e6), point("aten::addmm", 80, 0.8e6), point(LONG, 1, 1e8), *more)
    roofline = Roofline("operation", {"bf16": 1e14}, {}, BANDWIDTH, None, None, points)
    return roofline_figure(roofline, LIGHT, 10, is_panel)


def named(is_panel):
    (trace,) = (each for each in figure(is_panel).data if each.text is not None)
    return [text.strip() for text in trace.text], list(trace.textposition)


def test_names_stand_on_the_side_of_their_point_that_has_room():
    assert named(is_panel=False)[1] == ["middle left", "middle left", "middle right"]


def test_a_panel_has_fewer_and_shorter_names():
    wide, narrow = named(is_panel=False)[0], named(is_panel=True)[0]
    assert wide[0] == narrow[0] == "mm"
    assert len(wide[2]) > len(narrow[2])
    assert narrow[1] == ""
    assert len(narrow[2]) == PANEL_LABEL


def test_a_panel_names_few_decades_so_that_they_stand_apart():
    slow = point("aten::sum", 0.1, 1e14)  # 10 kFLOP/s, ten decades below the roof
    assert figure(False, slow).layout.yaxis.dtick == 1
    assert figure(True, slow).layout.yaxis.dtick == 2
    assert figure(True, slow).layout.yaxis.tickformat == "~s"
    sparse = point("aten::sum", 0.0001, 1e7)
    assert [figure(is_panel, sparse).layout.xaxis.dtick for is_panel in (False, True)] == [1, 2]

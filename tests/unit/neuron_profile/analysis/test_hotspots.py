from neuron_profile.analysis.hotspots import Cost, LineCost, OperationCost, find_hotspots, module_tree
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.analysis.time.charges import Charge, Charges
from neuron_profile.analysis.time.numbering import Origin
from neuron_tools import open_profile


def test_time_by_operation_line_and_module(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        hotspots = find_hotspots(profile)
    assert hotspots.operations == (
        OperationCost("aten::addmm", Cost(100, 0, 1)),
        OperationCost("aten::mul", Cost(30, 20, 2)),
    )
    assert hotspots.lines == (
        LineCost(SourceLine("/project/train.py", 2), "main", Cost(100, 0, 1), 100, 150),
        LineCost(SourceLine("/project/train.py", 3), "main", Cost(30, 20, 2), 50, 50),
    )
    assert hotspots.exact_lines == hotspots.lines
    assert hotspots.own_code_ns == 150
    assert (hotspots.device_ns, hotspots.unattributed_ns) == (200, 50)
    assert (hotspots.without_line_ns, hotspots.without_module_ns) == (50, 50)


def test_modules_include_what_is_inside_them(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        root = find_hotspots(profile).modules
    (model,) = root.children
    assert (root.path, root.cost, root.own_ns) == ("/", Cost(130, 20, 3), 0)
    assert (model.path, model.name, model.cost) == ("/model", "model", Cost(130, 20, 3))
    assert [(node.path, node.cost, node.own_ns) for node in model.children] == [
        ("/model/a", Cost(130, 0, 2), 130),
        ("/model/b", Cost(0, 20, 1), 20),
    ]


def test_operations_outside_modules_belong_to_the_root() -> None:
    root = module_tree(Charges((Charge(Origin("", "add", False, ""), 7, 2),), 0))
    assert (root.cost, root.own_ns, root.children) == (Cost(7, 0, 2), 7, ())

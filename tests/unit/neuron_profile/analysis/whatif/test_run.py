import numpy as np
import pytest

import neuron_tools
from neuron_profile.analysis.whatif.change import Variant, framework_shares, of_both_cores, parse_change
from neuron_profile.analysis.whatif.executions import Origin
from neuron_profile.analysis.whatif.replay import Waits
from neuron_profile.analysis.whatif.run import WhatIf
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.records.program import DType, HloOperation, joined_cores
from neuron_tools.simulator import ProgramBuilder, simulate
from neuron_tools.simulator.cost_scale import CostScale
from tests.unit.neuron_profile.small_capture import (
    CORE,
    DISPATCH_NS,
    LAUNCH_NS,
    Step,
    elementwise,
    open_capture,
    operation,
    products,
    program,
    write_capture,
)

FAST = program([("add", 3)], elementwise(20))
SLOW = program([("matmul", 4)], products(400, DType.F32))


@pytest.fixture
def device_bound(tmp_path):
    """Ten slow executions that nobody waits for."""
    with open_capture(tmp_path, [FAST, SLOW], [Step(1)] * 10) as profile:
        yield WhatIf(profile)


@pytest.fixture
def waiting(tmp_path):
    """Ten short executions, the host waits for each at line 7."""
    with open_capture(tmp_path / "waiting", [FAST, SLOW], [Step(0, wait_line=7)] * 10) as profile:
        yield WhatIf(profile)


def duration_ns(each):
    return -(-int(simulate(each, CORE).duration_ps) // 1000)


def test_without_a_change_the_replay_is_what_was_recorded(device_bound, waiting):
    slow, fast = duration_ns(SLOW), duration_ns(FAST)
    assert device_bound.recorded_ns() == DISPATCH_NS + 10 * (LAUNCH_NS + slow)
    assert waiting.recorded_ns() == 10 * (DISPATCH_NS + LAUNCH_NS + fast)
    gain = device_bound.gain(parse_change("hbm_bandwidth=1x"))
    assert gain.device_gain_ns == gain.total_gain_ns == 0


@pytest.mark.parametrize("text", ["op:matmul=0", "dtype=bf16"])
def test_a_change_is_made_on_both_physical_cores(text):
    longer = program([("matmul", 4)], products(500, DType.F32))
    change, parts = parse_change(text), []
    for whole in (longer, SLOW, joined_cores([SLOW, longer])):
        unchanged = Variant(whole, CORE, CostScale.unchanged(whole))
        parts.append(of_both_cores(unchanged, lambda variant: change.apply(variant, ())))
    longest, _, both = (simulate(each.program, CORE, scale=each.scale).duration_ps for each in parts)
    assert longest == both < 0.3 * simulate(longer, CORE).duration_ps


def test_a_free_operation_leaves_launches(device_bound):
    gain = device_bound.gain(parse_change("op:matmul=0"))
    assert gain.device_ns == 10 * duration_ns(SLOW)
    assert gain.device_after_ns < 0.02 * gain.device_ns
    assert gain.total_after_ns == DISPATCH_NS + 10 * LAUNCH_NS + gain.device_after_ns


@pytest.mark.parametrize(
    "text", ["module:model=0", "module:/model=0", "line:train.py:4=0", "engine:tensor=0"]
)
def test_selectors_of_the_same_rows_give_the_same(device_bound, text):
    assert (
        device_bound.gain(parse_change(text)).device_after_ns
        == device_bound.gain(parse_change("op:matmul=0")).device_after_ns
    )


@pytest.mark.parametrize("text", ["op:softmax=0", "module:other=0", "line:train.py:99=0", "spill=0"])
def test_what_is_not_there_gives_nothing(device_bound, text):
    assert device_bound.gain(parse_change(text)).device_gain_ns == 0


def test_a_range_gains_what_its_executions_do_also_where_they_were_launched_before_it(device_bound):
    executions, slow = device_bound.executions, duration_ns(SLOW)
    start, end = int(executions.start_ns[5]), int(executions.end_ns[5])
    part = WhatIf(device_bound.profile.slice(start, end))
    assert part.recorded_ns() == LAUNCH_NS + slow
    gain = part.gain(parse_change("op:matmul=0"))
    assert gain.total_gain_ns == gain.device_gain_ns > 0.98 * slow
    halfway = WhatIf(device_bound.profile.slice((start + end) // 2, end))
    assert halfway.recorded_ns() == pytest.approx(slow / 2, abs=1)


def test_what_a_range_leaves_out_counts_from_the_start_of_the_range(waiting):
    start = int(waiting.executions.start_ns[5]) - LAUNCH_NS - DISPATCH_NS // 2
    end = int(waiting.executions.end_ns[8])
    part = WhatIf(waiting.profile.slice(start, end))
    before = np.array([[0, 0, start]])
    half = np.array([[0, start - DISPATCH_NS, start]])
    assert part.without_spans_ns(before) == part.without_spans_ns(half) == part.recorded_ns()


def test_bf16_takes_a_quarter_of_fp32_on_the_tensor_engine(device_bound):
    gain = device_bound.gain(parse_change("dtype=bf16"))
    assert gain.device_after_ns == pytest.approx(gain.device_ns / 4, rel=0.1)


def test_waits_left_out_let_the_host_run_ahead(waiting):
    fast = duration_ns(FAST)
    assert waiting.without_waits_ns(Waits("/project/train.py", 7)) == DISPATCH_NS + 10 * (LAUNCH_NS + fast)
    assert waiting.without_waits_ns(Waits("/project/train.py", 8)) == waiting.recorded_ns()


@pytest.mark.parametrize("blocks", [True, False])
def test_a_copy_to_the_device_waits_for_the_device_if_it_blocks(tmp_path, blocks):
    steps = [Step(0, write_ns=5_000, blocks=blocks)] * 10
    with open_capture(tmp_path, [SLOW], steps) as profile:
        what_if = WhatIf(profile)
        nothing = np.zeros(len(what_if.executions), np.int64)
        each = DISPATCH_NS + LAUNCH_NS + 5_000
        assert what_if.total_ns(nothing) == (10 * each if blocks else DISPATCH_NS + 10 * LAUNCH_NS)
        assert what_if.recorded_ns() >= 10 * duration_ns(SLOW)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "is not understood: write FIGURE=VALUE"),
        ("op:x=fast", "'fast' is no factor"),
        ("op:x=-1", "the factor must be 0 or more"),
        ("dtype=fp8", "only dtype=bf16"),
    ],
)
def test_changes_that_mean_nothing(text, message):
    with pytest.raises(UsageError, match=message):
        parse_change(text)


def test_figures_and_engines_that_do_not_exist_are_named(device_bound):
    with pytest.raises(UsageError, match="warp_speed"):
        device_bound.gain(parse_change("warp_speed=9"))
    with pytest.raises(UsageError, match="no engine 'turbo'"):
        device_bound.gain(parse_change("engine:turbo=0"))


def test_a_profile_without_its_programs_says_so(tmp_path):
    path = write_capture(tmp_path, [FAST], [Step(0)])
    for file in (path / "programs").iterdir():
        file.unlink()
    with neuron_tools.open_profile(path) as profile, pytest.raises(NeuronToolsError, match="does not hold"):
        WhatIf(profile).gain(parse_change("dma=0"))


def fused():
    """One HLO operation of two framework operations: three quarters of line 4, a quarter of line 5."""
    builder = ProgramBuilder("fused", target="trn2")
    rows = tuple(builder.framework(operation(name, line)) for name, line in (("mm", 4), ("tanh", 5)))
    hlo = builder.hlo(HloOperation("fusion.0", "fusion", rows, (0.75, 0.25)))
    elementwise(200)(builder, [hlo])
    return builder.finish()


@pytest.mark.parametrize(("text", "left"), [("line:train.py:4=0", 0.25), ("operation:tanh=0", 0.75)])
def test_what_was_fused_is_scaled_by_its_share(tmp_path, text, left):
    with open_capture(tmp_path, [fused()], [Step(0)]) as profile:
        gain = WhatIf(profile).gain(parse_change(text))
        assert gain.device_after_ns == pytest.approx(left * gain.device_ns, rel=0.1)


def test_operations_of_a_fused_execution_come_from_its_own_lines():
    program, hlo = fused(), fused().hlo[0]
    origins = (Origin("aten::mm", "/a", "x.py", 1), Origin("aten::tanh", "/b", "x.py", 2))
    assert framework_shares(program, hlo, origins) == [(origins[0], 0.75), (origins[1], 0.25)]
    assert framework_shares(program, hlo, origins[:1]) == [(origins[0], 1.0)]

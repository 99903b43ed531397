"""A profile without instructions tells of each operation what the one with them tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest

from neuron_profile.analysis.time.charges import charge_device_time
from neuron_tools.profile.reader import Profile
from tests.integration.capture.programs import Folder

TRAIN = """
import torch
from torch import nn
torch.manual_seed(0)
layers = nn.Embedding(2000, 128), nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 2000)
model = nn.Sequential(*layers).to("neuron")
optimizer = torch.optim.AdamW(model.parameters())
loss = torch.compile(lambda tokens: nn.functional.cross_entropy(model(tokens), tokens))
for _ in range(2):
    loss(torch.arange(256).to("neuron")).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture(scope="module")
def details(tmp_path_factory: pytest.TempPathFactory) -> tuple[Profile, Profile]:
    made = []
    for detail in ("instructions", "operations"):
        folder = Folder(tmp_path_factory.mktemp(detail))
        folder.capture(TRAIN, "--target", "trn1", "--host-clock", "fixed", "--detail", detail)
        made.append(folder.profile())
    return made[0], made[1]


def _by(profile: Profile, key: Callable[[str, str], str]) -> Counter[str]:
    """Device time in ns by a part of the origin."""
    times: Counter[str] = Counter()
    for charge in charge_device_time(profile).charges:
        times[key(charge.origin.operation, charge.origin.stack)] += charge.device_ns
    return times


def test_each_operation_is_charged_with_as_much(details: tuple[Profile, Profile]) -> None:
    with_instructions, without = (_by(each, lambda operation, stack: operation) for each in details)
    assert with_instructions.keys() == without.keys()
    total_ns = sum(with_instructions.values())
    assert sum(without.values()) == pytest.approx(total_ns, rel=1e-3)
    assert sum(abs(with_instructions[each] - without[each]) for each in without) < 0.01 * total_ns


def test_so_is_each_hlo_opcode(details: tuple[Profile, Profile]) -> None:
    """What lies between its instructions comes to it, which those leave to the framework operation."""
    with_instructions, without = (Counter(charge_device_time(each).hlo) for each in details)
    between_ns = with_instructions.pop("")
    total_ns = sum(without.values())
    for opcode, device_ns in with_instructions.items():
        more_ns = without[opcode] - device_ns
        assert -0.005 * total_ns < more_ns < between_ns + 0.005 * total_ns, opcode


def test_the_charges_of_ranges_add_up(details: tuple[Profile, Profile]) -> None:
    _, without = details
    begin, end = (
        without.query("SELECT min(start_ts), max(end_ts) FROM HloInstruction").to_pylist()[0].values()
    )
    cuts = [begin + (end - begin) * part // 7 for part in range(8)]
    parts = [charge_device_time(without.slice(low, high)).device_ns for low, high in pairwise(cuts)]
    assert sum(parts) == pytest.approx(charge_device_time(without).device_ns, rel=1e-6)

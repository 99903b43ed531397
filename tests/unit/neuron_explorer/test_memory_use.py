"""Memory over time, as the page draws it."""

from neuron_explorer.memory_use import hbm_series
from neuron_tools import open_profile
from neuron_tools.profile.schema import TABLES


def test_what_a_device_held_last_it_holds_until_the_end_of_the_range(make_profile, tiny_tables) -> None:
    rest = {name: [0, 0] for name in TABLES["SystemProfileHbmUsage"].required}
    held = {"total_bytes": [4_000, 5_000], "tensors_bytes": [4_000, 5_000]}
    usage = {**rest, "instance_id": [""] * 2, "timestamp": [10, 20], "device_idx": [0, 0], **held}
    tables = {**tiny_tables, "SystemProfileHbmUsage": usage}
    with open_profile(make_profile(tables=tables)) as profile:
        (whole,) = hbm_series(profile)
        (part,) = hbm_series(profile.slice(15, 400))
    assert (whole.time_ns, whole.bytes_by_category) == ((10, 20), {"tensors": (4_000, 5_000)})
    assert part.time_ns[-1] == 400
    assert part.bytes_by_category["tensors"][-1] == 5_000

"""The monitor's own rules: each fires where it must, and stays silent where all is well."""

import os

import pytest

from neuron_monitor.api.view import Windows
from neuron_monitor.watch.alert import message
from neuron_monitor.watch.rules import Thresholds, Watcher, all_rules
from tests.fixtures.neuron_sysfs import INFERENTIA2, SysfsTree, held, process_core

LOOKS = 90
SOUND = {
    "executions": 10,
    "latency_ns": 4_000_000,
    "held": 1 << 30,
    "models": 2,
    "throttled_ns": 0,
    "failed": 0,
}


@pytest.fixture
def alerts_of(tmp_path, make_sampler, clock, pid):
    """The alerts of a minute and a half of a process; `change` says what is not sound at a look."""

    def watch(change=lambda look: {}, **thresholds):
        tree = SysfsTree(tmp_path / "tree", INFERENTIA2)
        tree.publish(pid, [0])
        sampler, totals = make_sampler(tree), {"executions": 0, "throttled_ns": 0, "failed": 0}
        histogram: dict[str, int] = {}
        watcher = Watcher(all_rules(Thresholds(**thresholds)), rest_s=1000)
        windows, found = Windows(sampler.sample()), []
        for look in range(1, LOOKS + 1):
            now = {**SOUND, **change(look)}
            totals = {name: count + now[name] for name, count in totals.items()}
            bucket = str(now["latency_ns"])
            histogram[bucket] = histogram.get(bucket, 0) + now["executions"]
            tree.publish(
                pid,
                [0],
                cores={"0": core(tree, now, totals, histogram)},
                models=[model(number) for number in range(now["models"])],
                elapsed_ns=look * 10**9,
                published_at=float(look),
            )
            tree.count(0, tensors=now["held"], inference_count=totals["executions"])
            for name in ("mem_ecc_uncorrected",):
                tree.write(f"neuron0/stats/hardware/{name}", now.get("ecc", 0))
            clock.pass_seconds(1)
            found += watcher.look(windows.advance(sampler.sample()))
        return found

    return watch


def core(tree, now, totals, histogram):
    counts = {"device": dict(histogram), "total": dict(histogram)}
    return process_core(
        tree,
        0,
        status={"success": totals["executions"], "generic_error": totals["failed"]},
        inference_count=totals["executions"],
        busy_ns=totals["executions"] * 4_000_000,
        throttled_ns=totals["throttled_ns"],
        device_memory=held(tensors=now["held"]),
        latency=counts,
    )


def model(number):
    told = {"name": f"graph_{number}", "uuid": f"{number:032x}", "model_id": number, "core": 0}
    return {**told, "execution_count": 1, "device_ns": 1, "is_running": True}


def names(alerts):
    return {alert.name for alert in alerts}


def test_a_program_that_works_raises_no_alert(alerts_of):
    assert alerts_of() == []


FAULTS = {
    "NeuronExecutionErrors": lambda look: {"failed": 1} if look == 50 else {},
    "NeuronCoreAllocatedIdle": lambda look: {"executions": 0} if look > 20 else {},
    "NeuronLatencyRegression": lambda look: {"latency_ns": 16_000_000} if look > 60 else {},
    "NeuronDeviceMemoryNearlyFull": lambda look: {"held": look * (200 << 20)},
    "NeuronThrottled": lambda look: {"throttled_ns": 300_000_000} if look > 40 else {},
    "NeuronUncorrectedBitErrors": lambda look: {"ecc": 2 if look > 30 else 0},
    "NeuronRecompilation": lambda look: {"models": 2 + max(0, look - 62)},
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_raises_its_alert_once_and_no_other(alerts_of, name):
    alerts = alerts_of(FAULTS[name], idle_s=60)
    assert [alert.name for alert in alerts] == [name]


def test_memory_that_grows_and_shrinks_is_no_trend(alerts_of):
    assert alerts_of(lambda look: {"held": (1 + look % 10) << 30}) == []


def test_compiling_at_the_beginning_is_no_recompilation(alerts_of):
    assert alerts_of(lambda look: {"models": min(look, 50)}) == []


def test_an_alert_names_its_process_as_prometheuss_alerts_do(alerts_of, pid):
    (alert,) = alerts_of(FAULTS["NeuronThrottled"])
    (told,) = message([alert], 0.0)["alerts"]
    assert told["labels"] == {"alertname": "NeuronThrottled", "pid": str(pid), "runtime_tag": str(pid)}
    assert told["annotations"]["summary"].endswith("slowed down for 30 % of the time")
    assert told["startsAt"] == "1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize(("work_ns", "alert_count"), [(900_000_000, 1), (320_000_000, 0)])
def test_a_rank_that_works_longer_than_the_others_is_told(
    tmp_path, make_sampler, clock, pid, work_ns, alert_count
):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2)
    watcher = Watcher(all_rules(Thresholds()), rest_s=1000)
    # The second rank is a process that lives as long: the test's parent.
    ranks = {pid: work_ns, os.getppid(): 300_000_000}
    sampler, found = make_sampler(tree), []
    windows = Windows(sampler.sample())
    for look in range(20):
        for rank, (process, engine_ns) in enumerate(ranks.items()):
            busy = {"busy_ns": look * 950_000_000, "engine_busy_ns": {"tensor": look * engine_ns}}
            cores = {str(rank): process_core(tree, rank, **busy, inference_count=look)}
            told = {"elapsed_ns": look * 10**9, "published_at": float(look)}
            tree.publish(process, [rank], cores=cores, rank=rank, **told)
        clock.pass_seconds(1)
        found += watcher.look(windows.advance(sampler.sample()))
    assert names(found) == ({"NeuronStraggler"} if alert_count else set())
    assert len(found) == alert_count
    assert [(alert.labels["pid"], alert.summary.partition(" ")[2]) for alert in found] == [
        (str(pid), "is rank 0, whose engines work 3 times as long as those of the other ranks")
    ][:alert_count]

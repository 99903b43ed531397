"""What the monitor costs on a full host: 16 devices of 8 cores, 64 processes, published four times a second.

Processor time is that of the monitor's own process, without its start; the load is made by this one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import orjson
import psutil

from benchmarks.figures import Figure, Peer, Target, fastest_in_turn
from benchmarks.long_watch import SAMPLES_OF_A_PROCESS, watch
from benchmarks.real_host import RealHost
from neuron_monitor.api.host import Host
from neuron_monitor.api.published import REREAD_INTERVAL_NS
from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.tree import DeviceTree
from neuron_monitor.api.view import Windows
from neuron_monitor.commands.start import make_sampler
from neuron_monitor.prometheus.exposition import Family, render
from neuron_monitor.prometheus.series import SeriesMaker
from neuron_monitor.report.config import default_configuration
from neuron_monitor.report.reporter import Reporter
from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.latency import bucket_of, upper_bound_ns
from neuron_tools.device.driver.own_files import OwnFiles
from neuron_tools.device.driver.processes import PublishedProcess, start_ticks
from tests.fixtures.neuron_sysfs import ENGINES, TRAFFIC, TRAINIUM2, SysfsTree

DEVICES = 16
PROCESSES = 64
CORES = DEVICES * TRAINIUM2.cores
PUBLISH_INTERVAL_S = 0.25
MODELS = 8
LATENCY_BUCKETS = range(bucket_of(1_000_000), bucket_of(64_000_000))  # 1 to 64 ms
MIB = 1 << 20
_SHORT_PERIOD_S = 0.05
_FIRST_REPORTS = 2  # belong to the start
MEMORY = {"tensors": 3 << 30, "model_code": 120 << 20, "constants": 2 << 30, "runtime_memory": 50 << 20}
_HOT = (
    "elapsed_ns",
    "nc_time_in_use",
    "inference_count",
    "flop_count",
    "success",
    "throttled_ns",
    *ENGINES,
    *TRAFFIC,
)


class Load:
    """Processes that publish: their files and their cores' counters, four times a second."""

    def __init__(self, root: Path) -> None:
        self.tree = SysfsTree(root, TRAINIUM2, DEVICES)
        self.sleepers = [subprocess.Popen(["sleep", "3600"]) for _ in range(PROCESSES)]
        share = CORES // PROCESSES
        self._processes = [(each, OwnFiles(root, each)) for each in map(_process, self.sleepers)]
        self._models = [_models(number * share) for number in range(PROCESSES)]
        self._descriptors = [
            (name, os.open(root / self.tree.core(core) / _node(name), os.O_WRONLY))
            for core in range(CORES)
            for name in _HOT
        ]
        self._rounds = 0
        for core in range(CORES):
            self.tree.count(core, device_memory=sum(MEMORY.values()), **MEMORY)
        self._stopped = threading.Event()
        self.publish()

    def publish(self) -> None:
        """Advance every counter by a quarter of a second."""
        self._rounds += 1
        step = {name: b"%d\n" % (self._rounds * _STEPS[name]) for name in _HOT}
        for name, descriptor in self._descriptors:
            os.pwrite(descriptor, step[name], 0)
        for number in range(PROCESSES):
            self._publish_process(number)

    def run(self) -> None:
        """Publish until stopped, on the first processor."""
        os.sched_setaffinity(0, _processors()[:1])
        while not self._stopped.wait(PUBLISH_INTERVAL_S):
            self.publish()

    def pause(self) -> None:
        """Publish no more by itself."""
        self._stopped.set()

    def stop(self) -> None:
        """End what was started."""
        self._stopped.set()
        for sleeper in self.sleepers:
            sleeper.kill()
            sleeper.wait()
        for _, descriptor in self._descriptors:
            os.close(descriptor)
        for _, files in self._processes:
            files.close()

    def _publish_process(self, number: int) -> None:
        count, share = self._rounds, CORES // PROCESSES
        process, files = self._processes[number]
        process.cores = {core: _counts(core, count) for core in range(number * share, (number + 1) * share)}
        process.host_memory = {"application_memory": Memory(1 << 30, 1 << 30, 1 << 30)}
        files.write(_FACTS, self._models[number], count * _STEPS["elapsed_ns"])


def _process(sleeper: subprocess.Popen[bytes]) -> PublishedProcess:
    facts = {"tag": str(sleeper.pid), "command": "python train.py", "runtime_version": "1", "rank": None}
    return PublishedProcess(sleeper.pid, start_ticks(sleeper.pid) or 0, facts)


def _counts(core: int, count: int) -> CoreCounts:
    """What a core counted in so many quarters of a second."""
    histogram = {upper_bound_ns(bucket): count * 3 for bucket in LATENCY_BUCKETS}
    device, place = divmod(core, TRAINIUM2.cores)
    return CoreCounts(
        device=device,
        core=place,
        status={"success": count * _STEPS["success"]},
        inference_count=count * _STEPS["inference_count"],
        flop_count=count * _STEPS["flop_count"],
        busy_ns=count * 150_000_000,
        elapsed_ns=count * _STEPS["elapsed_ns"],
        engine_busy_ns={name: count * _STEPS[name] for name in ENGINES},
        traffic={name: count * _STEPS[name] for name in TRAFFIC},
        device_memory={name: Memory(size, size, size) for name, size in MEMORY.items()},
        latency={"device": histogram, "total": histogram},
    )


def _models(core: int) -> list[dict[str, object]]:
    return [
        {
            "name": f"graph_{number}",
            "uuid": f"{number:032x}",
            "model_id": number,
            "core": core,
            "execution_count": 1000 - number,
            "device_ns": 10**9,
            "is_running": True,
        }
        for number in range(MODELS)
    ]


_FACTS = {"target": "trn2", "logical_core_size": 1, "timing": True, "profile": None, "reserved_cores": []}
_STEPS = {
    "elapsed_ns": 250_000_000,
    "nc_time_in_use": 150_000,
    "inference_count": 25,
    "flop_count": 10**13,
    "success": 25,
    "throttled_ns": 10_000_000,
    **dict.fromkeys(ENGINES, 70_000_000),
    **dict.fromkeys(TRAFFIC, 10**10),
}


def run(quick: bool) -> list[Figure]:
    """Measures the monitor's processor time, memory, latency and size."""
    with _load() as load:
        publisher = threading.Thread(target=load.run, daemon=True)
        publisher.start()
        root = str(load.tree.root)
        running = [
            *_running_cost(root, "1s", 1.0, 6 if quick else 20, Target("<=", 0.5, "python")),
            *_running_cost(root, "50ms", _SHORT_PERIOD_S, 100 if quick else 400, Target("<=", 3.0, "python")),
        ]
        load.pause()
        publisher.join()
        pids = [sleeper.pid for sleeper in load.sleepers]
        return [
            *running,
            *_starts(root, 3 if quick else 10),
            _report_time(load, root, 12 if quick else 200),
            _real_tree_cost(pids, 1.0, 6 if quick else 30, 0.5),
            _real_tree_cost(pids, _SHORT_PERIOD_S, 100 if quick else 400, 3.0),
            *_long_watch(5_000 if quick else 1_000_000),
            _host_cost(pids),
            _exposition_cost(root),
            *_fleet_page(5 if quick else 24),
            *_sizes(),
        ]


@contextmanager
def _load() -> Iterator[Load]:
    with _memory_folder() as folder:
        load = Load(folder / "tree")
        try:
            yield load
        finally:
            load.stop()


@contextmanager
def _memory_folder() -> Iterator[Path]:
    """A folder in memory where there is one."""
    parent = "/dev/shm" if os.path.isdir("/dev/shm") else None
    folder = Path(tempfile.mkdtemp(prefix="neuron-monitor-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _node(name: str) -> str:
    if name == "elapsed_ns":
        return "stats/clock/elapsed_ns/total"
    if name == "throttled_ns":
        return "stats/throttle/throttled_ns/total"
    folder = "engine_busy_ns" if name in ENGINES else "traffic" if name in TRAFFIC else "other_info"
    return f"stats/{'status' if name == 'success' else folder}/{name}/total"


def _running_cost(root: str, period: str, period_s: float, count: int, target: Target) -> list[Figure]:
    """Processor time a second, of which the start is no part, and the memory of the process."""
    command = [sys.executable, "-m", "neuron_monitor.cli", "--sysfs-root", root, "--period", period]
    with _pinned([*command, "--count", str(count + _FIRST_REPORTS)]) as started:
        share = _processor_share(started, count)
        memory = psutil.Process(started.pid).memory_info().rss / MIB
    rate = f"{1 / period_s:g} Hz"
    return [
        Figure(f"processor share at {rate}", share, "%", target, None, "of one core"),
        Figure(f"resident memory at {rate}", memory, "MiB", Target("<=", 60)),
    ]


@contextmanager
def _pinned(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program that writes lines, on the last processor; read to its end."""
    started = subprocess.Popen(command, stdout=subprocess.PIPE)
    os.sched_setaffinity(started.pid, _processors()[-1:])
    try:
        yield started
    finally:
        started.communicate()


def _processor_share(started: subprocess.Popen[bytes], count: int) -> float:
    """Percent of a processor that a program takes from its first lines to the last of `count` more."""
    assert started.stdout is not None
    process = psutil.Process(started.pid)
    for _ in range(_FIRST_REPORTS):
        started.stdout.readline()
    before_s, began = _processor_s(process), time.monotonic()
    for _ in range(count - 1):
        started.stdout.readline()
    return 100 * (_processor_s(process) - before_s) / (time.monotonic() - began)


def _processors() -> list[int]:
    """The processors of this machine: the load runs on the first, what is measured on the last.

    On a host with 16 devices the processes run on some of its many processors, the monitor on another.
    """
    return sorted(os.sched_getaffinity(0))


def _processor_s(process: psutil.Process) -> float:
    """Processor time of a process, in ns where the kernel tells: its usual clock ticks are 10 ms."""
    try:
        told = [path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/schedstat")]
        return sum(int(each.split()[0]) for each in told) / 1e9
    except OSError:
        times = process.cpu_times()
        return float(times.user + times.system)


def _starts(root: str, rounds: int) -> list[Figure]:
    """Time from the start of the command to its first line, and of `neuron-ls` to its end."""
    monitor = [sys.executable, "-m", "neuron_monitor.cli", "--sysfs-root", root, "--count", "1"]
    listing = [sys.executable, "-m", "neuron_monitor.ls_cli", "--sysfs-root", root]
    empty = [sys.executable, "-c", "pass"]

    def call(command: list[str], environment: dict[str, str]) -> Callable[[], object]:
        return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=True)

    commands = {"monitor": monitor, "listing": listing, "python": empty}
    with _memory_folder() as bytecode:
        environment = _with_bytecode(bytecode)
        calls = {name: call(command, environment) for name, command in commands.items()}
        best = fastest_in_turn(calls, rounds)
    python = Peer("python -c pass", best["python"] / 1e6)
    return [
        Figure("start to the first report", best["monitor"] / 1e6, "ms", Target("<=", 300, "python"), python),
        Figure("neuron-ls", best["listing"] / 1e6, "ms", Target("<=", 200, "python"), python),
    ]


def _with_bytecode(folder: Path) -> dict[str, str]:
    """The environment of a program whose modules are compiled before it starts, as pip leaves them."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder)}


def _report_time(load: Load, root: str, rounds: int) -> Figure:
    """Processor time to read everything and make the bytes of a report, while all counters change."""
    sampler = make_sampler(root)
    reporter = Reporter(default_configuration(1.0), sampler.sample())
    durations = []
    for _ in range(rounds):
        load.publish()
        time.sleep(REREAD_INTERVAL_NS / 1e9)
        began = time.process_time_ns()
        orjson.dumps(reporter.report(sampler.sample()))
        durations.append(time.process_time_ns() - began)
    sampler.close()
    durations.sort()
    note = f"median {durations[len(durations) // 2] / 1e6:.2g} ms of {rounds}"
    value = durations[min(len(durations) - 1, int(0.99 * len(durations)))] / 1e6
    return Figure("report, 99th percentile", value, "ms", Target("<=", 10, "python"), None, note)


def _real_tree_cost(pids: list[int], period_s: float, count: int, most: float) -> Figure:
    """Processor time on a real driver's tree whose counters all change, beside that of the reads alone.

    Both run at once on one processor, so that they meet the same disturbances.
    """
    with _memory_folder() as folder, RealHost(folder, pids).counting(), ThreadPoolExecutor(2) as pool:
        told = [str(folder), str(period_s), str(count + _FIRST_REPORTS)]
        commands = [
            [sys.executable, "-m", "benchmarks.real_host", name, *told] for name in ("monitor", "reads")
        ]
        share, reads = pool.map(lambda command: _share_of(command, count), commands)
    peer = Peer("the reads alone", reads)
    name, target = f"real driver's tree at {1 / period_s:g} Hz", Target("<=", most, "python")
    return Figure(name, share, "%", target, peer, "of one core; the peer is a compiled loop that only reads")


def _share_of(command: list[str], count: int) -> float:
    with _pinned(command) as started:
        return _processor_share(started, count)


def _long_watch(samples: int) -> list[Figure]:
    """What a long run leaves behind, and whether its samples cost more in the end."""
    with _memory_folder() as folder:
        told = watch(folder, samples)
    note = f"of {samples:,} samples, a process each {SAMPLES_OF_A_PROCESS:,}"
    first = Peer("the first tenth", told.first_ns / 1e3)
    last = Figure("sample of a small host, last tenth", told.last_ns / 1e3, "us", None, first, note)
    return [Figure("growth of memory", told.grown_bytes / MIB, "MiB", Target("<=", 1), None, note), last]


def _host_cost(pids: list[int]) -> Figure:
    """Processors, memory and the processes' times, beside psutil reading the same."""
    host = Host(sees_container=False)
    processes = [psutil.Process(pid) for pid in pids]

    def ours() -> None:
        host.read()
        host.process_times(pids)

    def theirs() -> None:
        psutil.cpu_times(percpu=True)
        psutil.cpu_stats()
        psutil.virtual_memory()
        psutil.swap_memory()
        for process in processes:
            process.cpu_times()

    best = fastest_in_turn({"ours": ours, "psutil": theirs}, 50)
    peer = Peer("psutil", best["psutil"] / 1e6)
    note = f"{len(pids)} processes"
    return Figure("reading the host", best["ours"] / 1e6, "ms", Target("<=", peer.value), peer, note)


def _exposition_cost(root: str) -> Figure:
    """Making the text of a scrape, beside prometheus_client making that of the same series."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.parser import text_string_to_metric_families

    sampler = Sampler(DeviceTree(root))
    windows = Windows(sampler.sample())
    view = windows.advance(sampler.sample())
    families: list[Family] = SeriesMaker(0.0).make(view, {}, 0.0)
    text = render(families).decode()
    parsed = list(text_string_to_metric_families(text))

    class Collected:
        def collect(self) -> Iterator[object]:
            for family in parsed:
                kind = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
                made = kind(family.name, family.documentation)
                for sample in family.samples:
                    made.add_sample(sample.name, sample.labels, sample.value)
                yield made

    registry = CollectorRegistry()
    registry.register(Collected())  # type: ignore[arg-type]  # collectors need only collect()
    best = fastest_in_turn(
        {
            "ours": lambda: render(SeriesMaker(0.0).make(view, {}, 0.0)),
            "prometheus_client": lambda: generate_latest(registry),
        },
        5,
    )
    sampler.close()
    peer = Peer("prometheus_client", best["prometheus_client"] / 1e6)
    note = f"{text.count(chr(10)):,} lines, {len(text) / MIB:.1f} MiB; made when scraped"
    return Figure("text of a scrape", best["ours"] / 1e6, "ms", Target("<=", peer.value), peer, note)


def _fleet_page(refreshes: int) -> list[Figure]:
    """What the page of a thousand hosts costs while it is open, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.fleet_page", str(refreshes)]
    told = orjson.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    share = 100 * told["processor_s"] / told["passed_s"]
    note = f"of one core; {told['hosts']:,} hosts, {told['answer_bytes'] / 1e3:.0f} kB every 5 s"
    return [
        Figure("fleet page, processor share", share, "%", Target("<=", 10, "python"), None, note),
        Figure("fleet page, resident memory", told["memory_bytes"] / MIB, "MiB", Target("<=", 300)),
    ]


def _sizes() -> list[Figure]:
    """Size of what `pip install neuron-tools[monitor]` brings beside Neuron Tools: as pulled, and on disk."""
    files = [path for name in _packages() for path in _files(name)]
    on_disk = sum(path.stat().st_size for path in files)
    pulled = sum(len(zlib.compress(path.read_bytes(), 6)) for path in files if path.suffix != ".pyc")
    note = "packed file by file, as wheels are"
    return [
        Figure("monitor extra, pulled", pulled / MIB, "MiB", Target("<=", 60), None, note),
        Figure("monitor extra, on disk", on_disk / MIB, "MiB"),
    ]


def _packages() -> set[str]:
    """The packages of the extra, with all that they need."""
    wanted = ["click", "psutil", "rich", "dash", "orjson", "plotly", "textual"]
    found: set[str] = set()
    while wanted:
        name = wanted.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            requirements = distribution(name).requires or ()
        except PackageNotFoundError:
            continue
        found.add(name)
        wanted += [_requirement(text) for text in requirements if "extra ==" not in text]
    return found


def _files(name: str) -> list[Path]:
    paths = [Path(str(file.locate())) for file in distribution(name).files or ()]
    return [path for path in paths if path.is_file()]


def _requirement(text: str) -> str:
    """The name of the package that a requirement asks for."""
    match = re.match(r"[\w.-]+", text)
    return match.group() if match else ""

# distributed has no types:
# mypy: disable-error-code="no-untyped-call"
"""Analyses: breakdowns and queues of a torch.profiler trace against HTA, ten million instructions, ranks.

Each measurement runs in a process of its own, so that its peak memory is its own. Loading the libraries and
compiling kernels, which happens once per installation, are not counted. HTA's times and ours both hold the
reading of the trace: HTA's parsing, our import.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks import long_capture, synthetic_profile, training_trace
from benchmarks.child import peer_python, run_json, run_module
from benchmarks.figures import Figure, Peer, Target

NAME = "benchmarks.analysis"
PEER = "HTA 0.5.0"
# HTA 0.5.0's critical path needs a pandas before 3.
REQUIREMENTS = ("HolisticTraceAnalysis==0.5.0", "pandas<3")
EVENTS, QUICK_EVENTS = 1_000_000, 50_000
# Also read to load libraries and kernels. Each wait of the host ends with the stream that has most work, so
# that the critical paths must agree.
SHORT_EVENTS = 20_000
SPEED_TARGET = Target(">=", 10)
HTA_BLOCKING = (
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventQuery", "cudaEventSynchronize", "cudaMemcpy",
    "cudaMemcpyAsync",
)  # fmt: skip
BREAKDOWNS = ("idle", "kernels", "communication", "queue", "critical path")
ROUNDS = 2
OTHER_ANALYSES = ("idle", "critical path", "memory", "roofline", "diff")
INSTRUCTIONS, QUICK_INSTRUCTIONS = 10_000_000, 400_000
SUMMARY_TARGET, SUMMARY_MEMORY_TARGET = Target("<=", 10, "compiled"), Target("<=", 2048)
RANKS, QUICK_RANKS = (32, 64, 128, 256), (2, 4)
RANK_SPANS, QUICK_RANK_SPANS = 1_000_000, 60_000
WORKERS, DISTINCT_RANKS = 2, 4
WORKER_MEMORY_TARGET, LINEAR_TARGET = Target("<=", 1024), Target("<=", 1.25)
MIB = 1 << 20

_HTA = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from hta.trace_analysis import TraceAnalysis
began, cpu = time.perf_counter(), time.process_time()
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=".")
load = [time.perf_counter() - began, time.process_time() - cpu]
found = {"load": load}
def timed(name, run):
    began, cpu = time.perf_counter(), time.process_time()
    result = run()
    found[name] = [time.perf_counter() - began, time.process_time() - cpu]
    return result
idle = timed("idle", lambda: analysis.get_idle_time_breakdown(ranks=[0], visualize=False))[0]
kernels = timed("kernels", lambda: analysis.get_gpu_kernel_breakdown(visualize=False))[1]
overlap = timed("communication", lambda: analysis.get_comm_comp_overlap(visualize=False))
queue = timed("queue", lambda: analysis.get_queue_length_summary(ranks=[0]))
launches = analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
temporal = analysis.get_temporal_breakdown(visualize=False)
whole = {"rank": 0, "annotation": "", "instance_id": None}
timed("critical path", lambda: analysis.critical_path_analysis(**whole))
short = TraceAnalysis(trace_files={0: sys.argv[2]}, trace_dir=".")
path = short.critical_path_analysis(**whole)[0]
found["numbers"] = {
    "host_us": float(idle[idle.idle_category == "host_wait"].idle_time.sum()),
    "launch_us": float(idle[idle.idle_category == "kernel_wait"].idle_time.sum()),
    "kernels_us": float(kernels["sum (us)"].sum()),
    "idle_us": float(temporal["idle_time(us)"].sum()),
    "computing_us": float(temporal["compute_time(us)"].sum()),
    "longest_queue": float(queue["queue_length"]["max"].max()),
    "calls_us": float(launches.cpu_duration.sum()),
    "short_launches": float((launches.cpu_duration > launches.gpu_duration).sum()),
    "hidden_percent": float(overlap["comp_comm_overlap_pctg"].iloc[0]),
}
bound = path.get_critical_path_breakdown().groupby("bound_by").duration.sum()
for name, theirs in (
    ("path_computing_us", "gpu_compute_bound"), ("path_communication_us", "gpu_communication_bound"),
    ("path_between_kernels_us", "gpu_kernel_kernel_overhead"),
    ("path_launches_us", "gpu_kernel_launch_overhead"), ("path_host_us", "cpu_bound"),
):
    found["numbers"][name] = float(bound.get(theirs, 0.0))
print(json.dumps(found))
"""


def run(quick: bool = False) -> list[Figure]:
    """The figures of the analyses."""
    with tempfile.TemporaryDirectory(prefix="neuron-benchmark-") as name:
        folder = Path(name)
        figures = trace_figures(folder, QUICK_EVENTS if quick else EVENTS)
        figures += summary_figures(folder, QUICK_INSTRUCTIONS if quick else INSTRUCTIONS)
        counts, spans = (QUICK_RANKS, QUICK_RANK_SPANS) if quick else (RANKS, RANK_SPANS)
        return figures + rank_figures(folder, counts, spans)


def trace_figures(folder: Path, events: int) -> list[Figure]:
    """Breakdowns of one trace, ours and HTA's in turn, reading included."""
    trace, short = folder / "trace.json", folder / "short.json"
    training_trace.write(trace, events)
    training_trace.write(short, SHORT_EVENTS)
    python = peer_python("holistictraceanalysis-0.5.0-pandas-2", *REQUIREMENTS)
    ours, peers = [], []
    for round_ in range(ROUNDS):
        ours.append(run_module(NAME, "traces", str(trace), str(short), str(folder / str(round_))))
        if python is not None and (round_ == 0 or events < EVENTS):
            peers.append(run_json([str(python), "-c", _HTA, str(trace), str(short)]))
    figures = []
    for name in BREAKDOWNS:
        seconds, cpu = _least(ours, name)
        title = f"{name} of {events:,} torch.profiler events"
        if not peers:
            figures.append(Figure(title, seconds, "s", note="HTA could not be installed"))
            continue
        peer_seconds, peer_cpu = _least(peers, name)
        note = f"reading included; processor time {cpu:.2f} s, HTA's {peer_cpu:.2f} s"
        figures.append(Figure(title, seconds, "s", peer=Peer(PEER, peer_seconds), note=note))
        target = SPEED_TARGET if events >= EVENTS else None
        figures.append(Figure(f"{title}, times as fast", peer_seconds / seconds, "x", target))
    if peers:
        figures.append(_agreement(ours[0], peers[0]))
    return figures


def summary_figures(folder: Path, instructions: int) -> list[Figure]:
    """Summary and advice of one long capture."""
    profile = folder / "long.nprof"
    long_capture.write(profile, instructions)
    found = run_module(NAME, "summary", str(profile))
    seconds = found["summary"][0] + found["advice"][0]
    cpu = found["summary"][1] + found["advice"][1]
    title = f"summary and advice of {instructions:,} instructions"
    note = (
        f"processor time {cpu:.1f} s; summary {found['summary'][0]:.1f} s, advice {found['advice'][0]:.1f} s "
        f"with {found['findings']} findings; a program of {long_capture.PROGRAM_INSTRUCTIONS:,} instructions"
    )
    full = instructions >= INSTRUCTIONS
    others = [
        Figure(
            f"{name} of {instructions:,} instructions",
            found[name][0],
            "s",
            note=f"processor time {found[name][1]:.1f} s",
        )
        for name in OTHER_ANALYSES
    ]
    return [
        Figure(title, seconds, "s", SUMMARY_TARGET if full else None, note=note),
        *others,
        Figure(
            f"memory of the {title}",
            found["peak_bytes"] / MIB,
            "MiB",
            SUMMARY_MEMORY_TARGET if full else None,
        ),
    ]


def rank_figures(folder: Path, counts: tuple[int, ...], spans: int) -> list[Figure]:
    """Summaries of more and more ranks on a Dask cluster of two workers."""
    for number in range(DISTINCT_RANKS):
        synthetic_profile.write(folder / f"rank{number}.nprof", spans, seed=number)
    found = run_module(NAME, "ranks", str(folder), ",".join(map(str, counts)))
    times = {count: found["seconds"][str(count)] for count in counts}
    most = counts[-1]
    title = f"summary of {most} ranks of {spans:,} spans"
    note = (
        f"{WORKERS} Dask workers, {found['reducer_bytes'] / MIB:.0f} MiB where the ranks are put together; "
        f"{DISTINCT_RANKS} profiles taken in turn; "
        + ", ".join(f"{count} ranks {seconds:.1f} s" for count, seconds in times.items())
    )
    per_rank = [found["cpu_s"][str(count)] / count for count in counts]
    full = spans >= RANK_SPANS
    return [
        Figure(title, times[most], "s", note=note),
        Figure(
            f"memory of a worker, {title}", found["worker_bytes"] / MIB, "MiB",
            WORKER_MEMORY_TARGET if full else None,
        ),
        Figure(
            f"workers' processor time per rank, {most} against {counts[0]} ranks",
            per_rank[-1] / per_rank[0], "", LINEAR_TARGET if full else None,
        ),
    ]  # fmt: skip


def _least(runs: list[dict[str, Any]], name: str) -> tuple[float, float]:
    """Least wall and processor time of reading and one breakdown."""
    return min(one["load"][0] + one[name][0] for one in runs), min(
        one["load"][1] + one[name][1] for one in runs
    )


def _agreement(ours: dict[str, Any], peer: dict[str, Any]) -> Figure:
    """The largest relative difference of what both define alike."""
    differences = {
        name: abs(ours["numbers"][name] - value) / max(abs(value), 1e-9)
        for name, value in peer["numbers"].items()
    }
    worst = max(differences, key=lambda name: differences[name])
    note = (
        f"{', '.join(differences)}; largest at {worst} (HTA rounds percentages to 0.01). The parts of the "
        f"critical path are those of {SHORT_EVENTS:,} events. Ours also has the host between operators and "
        "in blocking calls, so that it covers the trace; where a wait ends with several streams, ours takes "
        "the one that ended last and HTA's the one with most work, so that longer traces differ"
    )
    return Figure("difference from HTA's numbers", differences[worst], "", Target("<=", 1e-3), note=note)


def _timed(run: Callable[[], Any]) -> tuple[Any, list[float]]:
    began, cpu = perf_counter(), process_time()
    result = run()
    return result, [perf_counter() - began, process_time() - cpu]


def _traces(trace: str, short: str, folder: str) -> dict[str, Any]:
    """Reading and the breakdowns of a trace, after a short one has loaded all libraries and kernels."""
    from neuron_profile.analysis.analyses import run_analysis
    from neuron_tools import open_profile
    from neuron_tools.profile.importers import import_traces

    def read(source: str, destination: str) -> Any:
        import_traces([source], destination, arguments=False)  # as HTA: it keeps a few columns
        return open_profile(destination)

    names = {name: name.replace(" ", "-") for name in BREAKDOWNS}
    with read(short, f"{folder}-short.nprof") as profile:
        brief = {name: run_analysis(profile, analysis) for name, analysis in names.items()}
    profile, load = _timed(lambda: read(trace, f"{folder}.nprof"))
    found: dict[str, Any] = {"load": load}
    results = {}
    with profile:
        for name, analysis in names.items():
            results[name], found[name] = _timed(partial(run_analysis, profile, analysis))
    streams, (device,) = results["idle"], results["kernels"].devices
    found["numbers"] = {
        "host_us": sum(stream.host_ns for stream in streams) / 1e3,
        "launch_us": sum(stream.launch_ns for stream in streams) / 1e3,
        "kernels_us": sum(kernel.total_ns for kernel in results["kernels"].kernels if kernel.kind != "other")
                      / 1e3,
        "idle_us": device.idle_ns / 1e3,
        "computing_us": device.computing_ns / 1e3,
        "longest_queue": max(stream.most_waiting for stream in results["queue"]),
        "calls_us": sum(stream.call_ns for stream in results["queue"]) / 1e3,
        "short_launches": sum(stream.short for stream in results["queue"]),
        "hidden_percent": 100 * device.hidden_share,
    }  # fmt: skip
    found["numbers"] |= _path_parts(brief["critical path"], brief["kernels"])
    return found


def _path_parts(path: Any, kernels: Any) -> dict[str, float]:
    """Microseconds of a path by what HTA calls its bounds.

    HTA's path has neither the host between operators nor the host in calls that it takes for blocking.
    """
    from neuron_profile.analysis.traces.critical_path import BETWEEN_SPANS, LAUNCHING

    kinds = {kernel.name: kernel.kind for kernel in kernels.kernels}
    parts = dict.fromkeys(
        (
            "path_computing_us", "path_communication_us", "path_between_kernels_us", "path_launches_us",
            "path_host_us",
        ), 0.0
    )  # fmt: skip
    for entry in path.entries:
        if entry.resource == BETWEEN_SPANS:
            part = "path_between_kernels_us"
        elif entry.resource == LAUNCHING:
            part = "path_launches_us"
        elif entry.operation in kinds:
            communication = kinds[entry.operation] == "communication"
            part = "path_communication_us" if communication else "path_computing_us"
        elif entry.operation and entry.operation not in HTA_BLOCKING:
            part = "path_host_us"
        else:
            continue
        parts[part] += entry.path_ns / 1e3
    return parts


def _summary(path: str) -> dict[str, Any]:
    """Summary, advice and the other analyses of a profile, kernels loaded before."""
    from neuron_profile.analysis.advice.advise import advise
    from neuron_profile.analysis.analyses import run_analysis
    from neuron_profile.analysis.comparison.difference import compare
    from neuron_profile.analysis.overview import make_overview
    from neuron_profile.analysis.time import exposure_kernel
    from neuron_tools import open_profile
    from neuron_tools.simulator import kernel

    assert exposure_kernel.add_exposed
    assert kernel.simulate_program
    with open_profile(path) as profile:
        _, summary = _timed(lambda: make_overview(profile))
        findings, advice = _timed(lambda: advise(profile))
        found: dict[str, Any] = {
            name: _timed(partial(run_analysis, profile, name.replace(" ", "-")))[1]
            for name in OTHER_ANALYSES[:-1]
        }
        with open_profile(path) as same:
            found["diff"] = _timed(lambda: compare(profile, same))[1]
    return {"summary": summary, "advice": advice, "findings": len(findings), **found}


def _ranks(folder: str, counts: str) -> dict[str, Any]:
    """Summaries of so many ranks each; the workers' peak memory after all of them."""
    from distributed import Client, LocalCluster

    from neuron_profile.analysis.ranks.engine import summarise_job

    profiles = [str(path) for path in sorted(Path(folder).glob("rank*.nprof"))]
    options: dict[str, Any] = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    seconds: dict[str, float] = {}
    used: dict[str, float] = {}
    with LocalCluster(**options, memory_limit="1GiB") as cluster, Client(cluster) as client:
        address = cluster.scheduler_address
        summarise_job(profiles, "dask", scheduler=address)
        for count in map(int, counts.split(",")):
            paths = [profiles[number % len(profiles)] for number in range(count)]
            before = client.run(process_time)
            _, (seconds[str(count)], _) = _timed(partial(summarise_job, paths, "dask", scheduler=address))
            after = client.run(process_time)
            used[str(count)] = sum(after[worker] - before[worker] for worker in after)
        peaks = client.run(_peak_bytes)
    return {
        "seconds": seconds,
        "cpu_s": used,
        "worker_bytes": max(peaks.values()),
        "reducer_bytes": _peak_bytes(),
    }


def _peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "traces": _traces,
    "summary": _summary,
    "ranks": _ranks,
}


def main() -> None:
    """Measure one thing in this process and print it with the peak memory."""
    what, *arguments = sys.argv[1:]
    found = MEASUREMENTS[what](*arguments)
    found["peak_bytes"] = _peak_bytes()
    print(json.dumps(found))


if __name__ == "__main__":
    main()

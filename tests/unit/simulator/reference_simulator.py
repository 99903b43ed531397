"""The simulator again, in plain Python and strictly in order of time: what the compiled kernel must equal.

It shares the costs with the kernel but none of its algorithm: nothing runs ahead, every instant is settled
before the next, and all state is in dictionaries.
"""

from neuron_tools.records.program import Engine, Opcode
from neuron_tools.simulator.dma_costs import SHARE, dma_costs, trigger_costs
from neuron_tools.simulator.instruction_costs import instruction_costs


def ps(nanoseconds):
    return round(nanoseconds * 1000.0)


class Throttle:
    """Windows of the Tensor engine's limit."""

    def __init__(self, core):
        self.core = core
        self.window = max(ps(core.throttle_window_ns), 1)
        self.end, self.k, self.busy = self.window, core.throttle_initial, 0
        self.always = core.throttle_idle == core.throttle_busy == core.throttle_initial

    def close(self):
        busy = self.busy > self.core.throttle_threshold * self.window
        self.k = self.core.throttle_busy if busy else self.core.throttle_idle
        self.busy = 0
        self.end += self.window

    def end_of(self, start, work, streams):
        n = self.core.throttle_steps
        if self.always:
            return start + work * n // self.core.throttle_busy
        while self.end <= start:
            self.close()
        if not streams:
            return start + work * n // self.k
        time = start
        while (self.end - time) * self.k // n < work:
            done = (self.end - time) * self.k // n
            self.busy += done
            work -= done
            time = self.end
            self.close()
        self.busy += work
        return time - (-work * n // self.k)


class DmaQueues:
    """Queues that share the DMA engines."""

    def __init__(self, program, core):
        self.program, self.core, self.cost = program, core, dma_costs(program, core)
        self.order = {q: [] for q in range(len(program.queues))}
        self.done = dict.fromkeys(self.order, 0)
        self.free = dict.fromkeys(self.order, -1)
        self.active = {}  # queue -> [dma, remaining, rate]
        self.trigger, self.start, self.end = {}, {}, {}
        self.now = 0

    def add(self, dma, time):
        self.trigger[dma] = time + int(self.cost["issue_ps"][dma])
        self.order[int(self.program.dmas[dma]["queue"])].append(dma)

    def head(self, queue):
        waiting = self.order[queue][self.done[queue] :]
        return waiting[0] if waiting else None

    def activation(self, queue):
        dma = self.head(queue)
        arrival = self.trigger[dma] + int(self.cost["delay_ps"][dma])
        self.start[dma] = max(arrival, self.free[queue])
        return max(arrival + int(self.cost["startup_ps"][dma]), self.free[queue])

    def next_time(self):
        times = [self.now - (-left // rate) for _, left, rate in self.active.values()]
        times += [self.activation(q) for q in self.order if q not in self.active and self.head(q) is not None]
        return min(times, default=None)

    def advance(self, time):
        """Finish and start what is due at `time`; returns the DMAs finished."""
        finished = []
        for entry in self.active.values():
            entry[1] -= entry[2] * (time - self.now)
        self.now = time
        for queue in sorted(self.active):
            dma, left, _ = self.active[queue]
            if left <= 0:
                self.end[dma] = time + ps(self.core.dma_semaphore_ns)
                self.done[queue] += 1
                self.free[queue] = time
                del self.active[queue]
                finished.append(dma)
        for queue in self.order:
            if queue not in self.active and self.head(queue) is not None and self.activation(queue) <= time:
                dma = self.head(queue)
                self.active[queue] = [dma, int(self.cost["work"][dma]), 0]
        self.share()
        return finished

    def share(self):
        left = self.core.dma_engines * SHARE
        unsettled = sorted(self.active)
        while unsettled:
            share = left // len(unsettled)
            small = [q for q in unsettled if self.cost["cap"][self.active[q][0]] <= share]
            for queue in small or unsettled:
                cap = int(self.cost["cap"][self.active[queue][0]])
                self.active[queue][2] = cap if small else max(share, 1)
                left -= self.active[queue][2]
            unsettled = [q for q in unsettled if q not in small] if small else []
        demand = 0.0
        for queue in sorted(self.active):
            dma, _, rate = self.active[queue]
            demand += rate * self.cost["hbm_bytes_per_work"][dma]
        limit = self.core.hbm_bandwidth * 1e-12
        if demand > limit:
            for dma_entry in self.active.values():
                if self.cost["hbm_bytes_per_work"][dma_entry[0]] > 0:
                    dma_entry[2] = max(int(dma_entry[2] * (limit / demand)), 1)


def reference_simulate(program, core):
    """Dictionaries: start, end, ready, cause by instruction; trigger, start, end by DMA. None = deadlock."""
    table = program.instructions
    interval, latency = (costs.copy() for costs in instruction_costs(table, core))
    queue_interval, queue_latency = trigger_costs(program, core)
    for row in range(len(table)):
        if table[row]["dma"] >= 0:
            interval[row] = queue_interval[table[row]["dma"]]
            latency[row] = queue_latency[table[row]["dma"]]
    rows = {e: [r for r in range(len(table)) if table[r]["engine"] == e] for e in Engine}
    head = dict.fromkeys(Engine, 0)
    weights_free = array_free = 0
    semaphores = [0] * program.semaphore_count
    changed_at = [{} for _ in range(program.semaphore_count)]
    queues, throttle = DmaQueues(program, core), Throttle(core)
    start, end, ready_at, cause = {}, {}, {}, {}
    visible = []  # (time, order, semaphore, increment, cause)
    last_visible = dict.fromkeys(Engine, 0)
    queue_release = {queue: [] for queue in range(len(program.queues))}
    semaphore_delay = ps(core.semaphore_ns)
    writer = {}
    now = delivery = 0
    while True:
        # settle `now`
        for item in sorted(v for v in visible if v[0] <= now):
            visible.remove(item)
            _, _, semaphore, increment, why = item
            if semaphore >= 0:
                semaphores[semaphore] += increment
                delivery += 1
                changed_at[semaphore][semaphores[semaphore]] = (now, delivery, why)
        due = queues.next_time()
        if due is not None and due <= now:
            for dma in queues.advance(now):
                record = program.dmas[dma]
                time = queues.end[dma] + ps(core.dma_semaphore_latency_ns)
                visible.append((time, 10, int(record["semaphore"]), int(record["increment"]), -2 - dma))
                queue = int(record["queue"])
                delivery += 1
                queue_release[queue] = [*queue_release[queue], (now, delivery, -2 - dma)]
        progress = False
        begins = []
        for engine in Engine:
            if not rows[engine]:
                continue
            row = rows[engine][0]
            instruction = table[row]
            ready = head[engine]
            tensor = engine == Engine.TENSOR
            loads = tensor and instruction["opcode"] == Opcode.LDWEIGHTS
            streams = tensor and instruction["opcode"] in (Opcode.MATMUL, Opcode.TRANSPOSE)
            if loads:
                ready = max(ready, weights_free)
            if streams:
                ready = max(ready, weights_free, array_free)
            read = [int(instruction["source"]), int(instruction["second_source"])]
            if instruction["dma"] >= 0:
                read.append(int(program.dmas[instruction["dma"]]["tile"]))
            writers = [writer[engine, tile] for tile in read if (engine, tile) in writer]
            if writers:
                ready = max(ready, end[max(writers)] + semaphore_delay)
            releases = []
            first = int(instruction["first_wait"])
            held = False
            for wait in program.waits[first : first + int(instruction["wait_count"])]:
                if semaphores[wait["semaphore"]] < wait["value"]:
                    held = True
                    break
                reached = [v for s, v in changed_at[wait["semaphore"]].items() if s >= wait["value"]]
                if wait["value"] > 0:
                    releases.append(min(reached))
            if instruction["dma"] >= 0 and not held:
                queue = int(program.dmas[instruction["dma"]]["queue"])
                outstanding = len(queues.order[queue]) - queues.done[queue]
                if outstanding >= core.dma_outstanding_per_queue:
                    held = True
                needed = len(queues.order[queue]) - core.dma_outstanding_per_queue
                if needed >= 0 and not held:
                    releases.append(queue_release[queue][needed])
            if held:
                continue
            begin, why = ready, -1
            late = [release for release in releases if release[0] > ready]
            if late:
                latest, _, why = max(late)
                begin = latest + (max(ps(core.semaphore_tensor_ns - core.semaphore_ns), 0) if tensor else 0)
            if begin > now:
                begins.append(begin)
                continue
            progress = True
            rows[engine].pop(0)
            start[row], ready_at[row], cause[row] = begin, ready, why
            if loads or streams:
                free = throttle.end_of(begin, int(interval[row]), streams)
                if loads:
                    weights_free = free
                else:
                    array_free = free
                head[engine] = begin + ps(core.tensor_dispatch_ns)
                slowed = free - begin - int(interval[row])
                drained = 0
                if slowed > 0 and interval[row] > 0:
                    column = 1000.0 / core.tensor_clock_ghz
                    drained = int(int(instruction["columns"]) * column * slowed / int(interval[row]))
                end[row] = begin + int(latency[row]) + slowed + drained
            else:
                head[engine] = begin + int(interval[row])
                end[row] = begin + int(latency[row])
            if instruction["destination"] >= 0:
                writer[engine, int(instruction["destination"])] = row
            last_visible[engine] = max(last_visible[engine], end[row] + semaphore_delay)
            if instruction["signal"] >= 0:
                visible.append((last_visible[engine], int(engine), int(instruction["signal"]), 1, row))
            if instruction["dma"] >= 0:
                queues.add(int(instruction["dma"]), begin)
        if progress:
            continue
        later = begins + [item[0] for item in visible]
        due = queues.next_time()
        if due is not None:
            later.append(due)
        later = [time for time in later if time > now]
        if not later:
            break
        now = min(later)
    if any(rows.values()):
        return None
    return start, end, ready_at, cause, queues.trigger, queues.start, queues.end


__all__ = ["reference_simulate"]

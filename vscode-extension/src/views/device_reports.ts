/** What `neuron-ls -j` and `neuron-monitor` print, as far as the view Devices shows it. */

export interface DeviceProcess {
  readonly pid: number;
  readonly command: string;
}

export interface Device {
  readonly index: number;
  readonly instance: string;
  readonly isSimulated: boolean;
  readonly cores: readonly number[];
  readonly memoryBytes: number;
  readonly processes: readonly DeviceProcess[];
}

/** Use of a NeuronCore over the last period. */
export interface CoreUse {
  /** 0 to 100. */
  readonly percent: number;
  readonly memoryBytes: number;
}

/** The devices of a report; none where it makes no sense. */
export function readDevices(text: string): Device[] {
  const rows = parse(text);
  return Array.isArray(rows) ? rows.map(record).map(readDevice) : [];
}

/** Use by core of one line of `neuron-monitor`; undefined where it is none. */
export function readUse(line: string): Map<number, CoreUse> | undefined {
  const report = parse(line);
  const runtimes = record(report)["neuron_runtime_data"];
  if (!Array.isArray(runtimes)) return undefined;
  const use = new Map<number, CoreUse>();
  for (const runtime of runtimes.map(record)) {
    const counters = record(record(runtime["report"])["neuroncore_counters"]);
    const memory = record(record(record(runtime["report"])["memory_used"])["neuron_runtime_used_bytes"]);
    const byCore = record(record(memory["usage_breakdown"])["neuroncore_memory_usage"]);
    for (const [core, values] of Object.entries(record(counters["neuroncores_in_use"]))) {
      const percent = number(record(values)["neuroncore_utilization"]);
      const bytes = Object.values(record(byCore[core])).reduce<number>((sum, value) => sum + number(value), 0);
      const known = use.get(Number(core));
      use.set(Number(core), {
        percent: Math.max(percent, known?.percent ?? 0),
        memoryBytes: bytes + (known?.memoryBytes ?? 0),
      });
    }
  }
  return use;
}

function readDevice(row: Record<string, unknown>): Device {
  const ids = row["neuroncore_ids"];
  const processes = row["neuron_processes"];
  return {
    index: number(row["neuron_device"]),
    instance: text(row["instance_type"]),
    isSimulated: row["instance_id"] === "simulated",
    cores: Array.isArray(ids) ? ids.map(number) : [],
    memoryBytes: number(row["memory_size"]),
    processes: Array.isArray(processes)
      ? processes.map(record).map((process) => ({ pid: number(process["pid"]), command: text(process["command"]) }))
      : [],
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function number(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

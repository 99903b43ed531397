import { describe, expect, it } from "vitest";
import { readDevices, readUse } from "../src/views/device_reports";

describe("readDevices", () => {
  it("reads what neuron-ls prints", () => {
    const text = JSON.stringify([
      {
        instance_type: "trn2.48xlarge", instance_id: "simulated", neuron_device: 0, memory_size: 103079215104,
        neuroncore_ids: [0, 1], neuron_processes: [{ pid: 7, command: "python train.py" }],
      },
    ]);
    expect(readDevices(text)).toEqual([
      {
        index: 0, instance: "trn2.48xlarge", isSimulated: true, cores: [0, 1], memoryBytes: 103079215104,
        processes: [{ pid: 7, command: "python train.py" }],
      },
    ]);
  });

  it.each(["", "{}", "[1]", "[null]", "Error: none"])("makes no trouble of %j", (text) =>
    expect(readDevices(text).every((device) => device.cores.length === 0)).toBe(true));
});

describe("readUse", () => {
  const runtime = (percent: number): object => ({
    report: {
      neuroncore_counters: { neuroncores_in_use: { "0": { neuroncore_utilization: percent } } },
      memory_used: { neuron_runtime_used_bytes: { usage_breakdown: { neuroncore_memory_usage: { "0": { tensors: 5, constants: 2 } } } } },
    },
  });

  it("joins the runtimes of a core", () =>
    expect(readUse(JSON.stringify({ neuron_runtime_data: [runtime(20), runtime(80)] }))).toEqual(
      new Map([[0, { percent: 80, memoryBytes: 14 }]]),
    ));

  it("passes over other lines", () => expect(readUse("not json")).toBeUndefined());
});

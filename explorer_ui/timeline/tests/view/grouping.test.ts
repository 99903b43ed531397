import { expect, it } from "vitest";
import { groupingOf, regrouped } from "../../src/view/grouping.js";
import { track } from "../tracks.js";

const RANKS = [0, 1].flatMap((rank) => [
  track(10 * rank, { level: "host_thread", name: "Thread 0", rank, core: null, headings: [`rank ${rank}: train.py`], host: `host${rank}` }),
  track(10 * rank + 1, { name: "Tensor", rank, headings: [`rank ${rank}: train.py`, "NeuronCore 0"], host: `host${rank}` }),
  track(10 * rank + 2, { level: "dma_queue", name: "q0", rank, headings: [`rank ${rank}: train.py`, "NeuronCore 0", "DMA queues"], host: `host${rank}` }),
]);
const placed = (by: Parameters<typeof regrouped>[1]): string[] =>
  regrouped(RANKS, by).map((one) => [...one.headings, one.name].join(" > "));

it("leaves tracks as the profile has them unless asked otherwise", () => {
  expect(regrouped(RANKS, "process")).toBe(RANKS);
  expect(groupingOf("nonsense")).toBe("process");
});

it("puts the same core of all ranks together, and the host apart", () => {
  expect(placed("core").slice(0, 2)).toEqual(["Host > rank 0: train.py > Thread 0", "Host > rank 1: train.py > Thread 0"]);
  expect(placed("core")[2]).toBe("NeuronCore 0 > rank 0: train.py > Tensor");
});

it("puts an engine of all ranks together, whose names say where each is", () => {
  expect(placed("engine")).toContain("Tensor > Tensor · rank 0: train.py · NeuronCore 0");
  const tensor = placed("engine").filter((text) => text.startsWith("Tensor"));
  expect(placed("engine").slice(2, 4)).toEqual(tensor);
});

it("groups by rank, by thread and by host", () => {
  expect(placed("rank")).toContain("Rank 1 > NeuronCore 0 > DMA queues > q0");
  expect(placed("thread")[0]).toBe("Threads of the host > Thread 0 · rank 0: train.py");
  expect(placed("host")[3]).toBe("host1 > rank 1: train.py > Thread 0");
});

it("keeps each heading in one place", () => {
  for (const by of ["core", "engine", "thread", "rank", "host"] as const) {
    const outer = regrouped(RANKS, by).map((one) => one.headings[0]);
    expect(outer.filter((heading, place) => heading !== outer[place - 1]).length).toBe(new Set(outer).size);
  }
});

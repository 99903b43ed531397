import { describe, expect, it } from "vitest";
import type { FileCosts, FunctionWork, LineWork, Work } from "../src/server/answers";
import { compareCosts, hottestFirst, nextHottest, placeCosts, predictCosts, type CostedLine } from "../src/source/file_costs";

const work = (ns: number): Work => ({
  device_ns: ns, share: ns / 1000, backward_ns: 0, calls: 1, instructions: 1, hbm_bytes: 0, flops: 0, engine_ns: {},
});
const line = (number: number, ns: number): LineWork => ({ ...work(ns), line: number, own_code: work(ns), total: work(ns) });
const TEXT = "def f():\n    a()\n    b()\n";
const FUNCTION: FunctionWork = {
  ...work(900), name: "f", line: 1, first: 1, last: 3, is_kernel: false, own_code: work(900), total: { ...work(900), mfu: 0.1 },
};
const COSTS: FileCosts = { path: "/p/f.py", device_ns: 1000, lines: [line(2, 300), line(3, 600)], functions: [FUNCTION] };
const captured = { path: "/p/f.py", sha256: null, text: TEXT };

describe("placeCosts", () => {
  it("leaves costs of an equal text where they are", () => {
    const placed = placeCosts(COSTS, captured, TEXT);
    expect(placed.freshness).toBe("same");
    expect(placed.lines.map((row) => row.line)).toEqual([1, 2]);
    expect(placed.functions.map((row) => row.line)).toEqual([0]);
  });

  it("follows lines, counts those that are gone", () => {
    const placed = placeCosts(COSTS, captured, "import x\ndef f():\n    b()\n    c()\n");
    expect(placed.freshness).toBe("moved");
    expect(placed.lines.map((row) => [row.recordedLine, row.line])).toEqual([[3, 2]]);
    expect(placed.lost).toBe(1);
    expect(placed.place(1)).toBe(1);
    expect(placed.recorded(2)).toBe(3);
    expect(placed.recorded(3)).toBeUndefined();
  });

  it("takes line endings for nothing", () =>
    expect(placeCosts(COSTS, captured, TEXT.replaceAll("\n", "\r\n")).freshness).toBe("same"));

  it("shows a line with what the libraries did that it called", () => {
    const calling = { ...line(2, 0), own_code: work(700), total: work(900) };
    const { lines } = placeCosts({ ...COSTS, lines: [calling, line(3, 100)] }, captured, TEXT);
    expect(hottestFirst(lines).map((row) => [row.line, row.shown.device_ns])).toEqual([[1, 700], [2, 100]]);
  });

  it("shows the lines of a library with their own time", () => {
    const inside = { ...line(2, 300), own_code: work(0) };
    const { lines } = placeCosts({ ...COSTS, lines: [inside] }, captured, TEXT);
    expect(lines.map((row) => row.shown.device_ns)).toEqual([300]);
  });

  it("says so where the captured text is not known", () => {
    const placed = placeCosts(COSTS, undefined, "one line");
    expect(placed.freshness).toBe("unknown");
    expect(placed.lines).toEqual([]);
    expect(placed.recorded(4)).toBe(5);
  });
});

describe("compareCosts", () => {
  const NEW_TEXT = "def f():\n    c()\n    b()\n";
  const placed = placeCosts({ ...COSTS, lines: [line(2, 100), line(3, 450)] }, { ...captured, text: NEW_TEXT }, NEW_TEXT);

  it("gives each line what it cost in the base, nothing where it is new", () => {
    const base = placeCosts(COSTS, captured, NEW_TEXT);
    const { lines } = compareCosts(placed, base);
    expect(lines.map((row) => [row.line, row.shown.device_ns, row.before?.device_ns])).toEqual([[1, 100, 0], [2, 450, 600]]);
  });

  it("adds lines that cost something only in the base", () => {
    const now = placeCosts({ ...COSTS, lines: [line(3, 450)] }, captured, TEXT);
    const { lines } = compareCosts(now, placeCosts(COSTS, captured, TEXT));
    expect(lines.map((row) => [row.line, row.shown.device_ns, row.before?.device_ns])).toEqual([[1, 0, 300], [2, 450, 600]]);
    expect(hottestFirst(lines).map((row) => row.line)).toEqual([2]);
  });
});

describe("nextHottest", () => {
  const { lines } = placeCosts({ ...COSTS, lines: [line(1, 0), line(2, 300), line(3, 600)] }, captured, TEXT);

  it("ranks by own time, without lines that have none", () =>
    expect(hottestFirst(lines).map((row) => row.line)).toEqual([2, 1]));

  it("begins with the hottest, and goes round", () => {
    const after = (place: number): number | undefined => nextHottest(lines, (row) => row.line === place)?.line;
    expect([0, 2, 1].map(after)).toEqual([2, 1, 2]);
    expect(nextHottest<CostedLine>([], (row) => row.line === 0)).toBeUndefined();
  });
});

describe("predictCosts", () => {
  const NEW_TEXT = "def f():\n    x()\n    a()\n    b()\n";
  const placed = placeCosts({ ...COSTS, device_ns: 1000 }, captured, NEW_TEXT);
  const preview = {
    kernels: ["f"],
    problems: [],
    before: { path: "/p/f.py", device_ns: 400, lines: [line(3, 400)], functions: [] },
    after: { path: "/p/f.py", device_ns: 150, lines: [line(2, 50), line(4, 100)], functions: [] },
  };
  const predicted = predictCosts(placed, preview);

  it("replaces what the kernels took by what they would take, in the lines as they stand now", () =>
    expect(predicted.lines.map(({ line: at, shown, before }) => [at, shown.device_ns, before?.device_ns])).toEqual([
      [1, 50, 0],
      [2, 300, undefined],
      [3, 300, 600],
    ]));

  it("has shares of the time that the whole would take", () => {
    expect(predicted.deviceNs).toBe(750);
    expect(predicted.lines[2]?.shown.share).toBeCloseTo(0.4);
    expect(predicted.predicted).toEqual({ kernels: ["f"], beforeNs: 400, afterNs: 150 });
  });

  it("changes nothing where nothing could be simulated", () =>
    expect(predictCosts(placed, { ...preview, after: null })).toBe(placed));
});

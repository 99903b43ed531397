import { describe, expect, it } from "vitest";
import { readSpanTiles } from "../../src/data/chunk.js";
import { NameTable } from "../../src/data/names.js";
import { hitTest } from "../../src/view/hit.js";
import { layOut, type TrackRow } from "../../src/view/layout.js";
import { TimeScale } from "../../src/view/time_scale.js";
import { sightSum } from "../../src/features/sight.js";
import { spanAnswer, track } from "../tracks.js";

const names = new NameTable();
const folding = { pinned: new Set<string>(), collapsed: new Set<string>(), expanded: new Set<string>() };
const row = layOut([track(0, { headings: [], depths: 2 })], folding).rows[0] as TrackRow;
const scale = new TimeScale({ startNs: 1024, endNs: 2048 }, 1024);
const tile = readSpanTiles(
  spanAnswer([
    { track: 0, start: 100, duration: 50, name: "a", row: 1 },
    { track: 0, start: 200, duration: 0.5, count: 3, busy: 51, isBucket: true, name: "b", row: 2 },
    { track: 0, depth: 1, start: 110, duration: 10, name: "c", row: 3 },
  ]),
  0,
  names,
).get(0);
const placed = [{ chunk: tile!.get(0)!, level: 0, startNs: 1024, clipLeft: 0, clipRight: 1024, isSharp: true }];

describe("what stands at a point", () => {
  const at = (x: number, depth = 0) => hitTest(placed, row, depth, x, scale, names);

  it("is the span there, with its time from the profile's start", () => {
    expect(at(120)).toMatchObject({ name: "a", startNs: 1124, durationNs: 50, tableRow: 1, isBucket: false });
    expect(at(115, 1)).toMatchObject({ name: "c" });
  });

  it("is a bucket with its count and how busy it is", () => {
    expect(at(200)).toMatchObject({ isBucket: true, count: 3, busyShare: 0.2, bucketNs: 1 });
  });

  it("is also what was narrowly missed, and nothing farther off", () => {
    expect(at(151.5)).toMatchObject({ name: "a" });
    expect(at(170)).toBeNull();
  });
});

it("sums what is in sight: spans of all depths, and how busy the first is", () => {
  const sum = sightSum({ row, top: 0, placed }, { startNs: 1024, endNs: 2048 });
  expect(sum!.count).toBe(5);
  expect(sum!.busyShare).toBeCloseTo((50 + 0.2) / 1024, 5);
  expect(sightSum({ row, top: 0, placed }, { startNs: 1124, endNs: 1149 })!.busyShare).toBeCloseTo(1);
});

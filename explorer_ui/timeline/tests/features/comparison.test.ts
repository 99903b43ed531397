import { describe, expect, it } from "vitest";
import { NameTable } from "../../src/data/names.js";
import type { DataSource } from "../../src/data/source.js";
import type { ProfileSummary, Track } from "../../src/data/track.js";
import { Comparison, deltaSlot, UNKNOWN_SLOT } from "../../src/features/comparison.js";
import { track } from "../tracks.js";

const summary = (name: string, startNs: number, endNs: number, tracks: Track[]): ProfileSummary => ({
  id: name,
  name,
  isComplete: true,
  originNs: "0",
  startNs,
  endNs,
  tracks,
});

const answer = { tracks: { a: [{ name: "dot", new_ns: 300, base_ns: 100 }, { name: "add", new_ns: 100, base_ns: 100 }] } };
const source: DataSource = {
  request: () => Promise.resolve(new TextEncoder().encode(JSON.stringify(answer)).buffer),
};
const names = new NameTable();
const own = summary("new", 1000, 2000, [track(0, { id: "a" }), track(1, { id: "b" })]);
const other = summary("old", 400, 2400, [track(0, { id: "c" }), track(1, { id: "a" })]);
const comparison = new Comparison(own, [{ source, summary: other }], names);
const abort = new AbortController();

/** A source whose deltas tell which profile they were asked for. */
function deltasBy(means: Readonly<Record<string, number>>): DataSource {
  return {
    request: (_path, params) => {
      const base_ns = means[params["base"]!]!;
      return Promise.resolve(new TextEncoder().encode(JSON.stringify({ tracks: { a: [{ name: "dot", new_ns: 300, base_ns }] } })).buffer);
    },
  };
}

describe("a comparison", () => {
  it("puts each track below the one of the same id, and what has none last", () => {
    const all = comparison.all();
    expect(all.tracks.map((one) => one.id)).toEqual(["a", "base 1:a", "b", "base 1:c"]);
    expect(all.tracks[1]!.name).toBe("↳ old");
    expect(all.tracks[3]!.headings[0]).toBe("Not in new");
    expect(all.tracks[3]!.name).toBe("Engine 0 ↳ old");
    expect(all.tracks[1]!.listed).toBe(1);
    expect(new Set(all.tracks.map((one) => one.place)).size).toBe(4);
  });

  it("begins both at the same point and shows the longer one whole", () => {
    expect(comparison.originOf(comparison.all().tracks[1]!).params["shift"]).toBe("-600");
    expect(comparison.all().endNs).toBe(3000);
  });

  it("colours names by how much their mean changed, in both profiles", async () => {
    const [first, below] = comparison.all().tracks;
    expect(comparison.slot(first!, names.code("dot"))).toBeUndefined();
    await comparison.load(source, abort.signal);
    expect(comparison.slot(first!, names.code("dot"))).toBe(6);
    expect(comparison.slot(below!, names.code("dot"))).toBe(6);
    expect(comparison.slot(first!, names.code("add"))).toBe(3);
    expect(comparison.slot(first!, names.code("new one"))).toBe(UNKNOWN_SLOT);
    expect(comparison.changes(first!, names.code("dot"))).toEqual([{ ratio: 3, base: "old" }]);
  });

  it.each([
    [0.5, 0],
    [0.8, 1],
    [0.95, 2],
    [1.01, 3],
    [1.05, 4],
    [1.3, 5],
    [4, 6],
    [0, UNKNOWN_SLOT],
    [NaN, UNKNOWN_SLOT],
  ])("has the slot of a ratio of %d", (ratio, slot) => expect(deltaSlot(ratio)).toBe(slot));

  it("lets steps begin at the same point where it is told how far they are apart", () => {
    const apart = new Comparison(own, [{ source, summary: other, shiftNs: 70 }], names);
    expect(apart.originOf(apart.all().tracks[1]!).params["shift"]).toBe("70");
  });
});

describe("a comparison with several profiles", () => {
  const third = summary("older", 0, 9000, [track(0, { id: "a" }), track(1, { id: "c" })]);
  const several = new Comparison(own, [{ source, summary: other }, { source, summary: third, shiftNs: 5 }], names);
  const { tracks, endNs } = several.all();

  it("puts their tracks below each other in order, each with its own place", () => {
    expect(tracks.map((one) => one.id)).toEqual(["a", "base 1:a", "base 2:a", "b", "base 1:c", "base 2:c"]);
    expect(new Set(tracks.map((one) => one.place)).size).toBe(6);
    expect(endNs).toBe(10_000);
  });

  it("asks each for its own data, at its own shift", () => {
    expect(several.originOf(tracks[1]!).params["shift"]).toBe("-600");
    expect(several.originOf(tracks[2]!).params["shift"]).toBe("5");
  });

  it("colours the profile by the first, the others by their own change, and tells all of them", async () => {
    await several.load(deltasBy({ old: 300, older: 100 }), abort.signal);
    const dot = names.code("dot");
    expect(tracks.slice(0, 3).map((one) => several.slot(one, dot))).toEqual([3, 3, 6]);
    expect(several.changes(tracks[0]!, dot)).toEqual([{ ratio: 1, base: "old" }, { ratio: 3, base: "older" }]);
    expect(several.changes(tracks[2]!, dot)).toEqual([{ ratio: 3, base: "older" }]);
  });
});

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
const comparison = new Comparison(
  source,
  summary("new", 1000, 2000, [track(0, { id: "a" }), track(1, { id: "b" })]),
  summary("base", 400, 2400, [track(0, { id: "c" }), track(1, { id: "a" })]),
  names,
);

describe("a comparison", () => {
  it("puts each track below the one of the same id, and what has none last", () => {
    const both = comparison.both();
    expect(both.tracks.map((one) => one.id)).toEqual(["a", "base:a", "b", "base:c"]);
    expect(both.tracks[3]!.headings[0]).toBe("Only in base");
    expect(both.tracks[1]!.listed).toBe(1);
    expect(new Set(both.tracks.map((one) => one.place)).size).toBe(4);
  });

  it("begins both at the same point and shows the longer one whole", () => {
    expect(comparison.origin.params["shift"]).toBe("-600");
    expect(comparison.both().endNs).toBe(3000);
  });

  it("colours names by how much their mean changed, in both profiles", async () => {
    const [own, base] = comparison.both().tracks;
    expect(comparison.slot(own!, names.code("dot"))).toBeUndefined();
    await comparison.load(source, new AbortController().signal);
    expect(comparison.slot(own!, names.code("dot"))).toBe(6);
    expect(comparison.slot(base!, names.code("dot"))).toBe(6);
    expect(comparison.slot(own!, names.code("add"))).toBe(3);
    expect(comparison.slot(own!, names.code("new one"))).toBe(UNKNOWN_SLOT);
    expect(comparison.ratio(own!, "dot")).toBe(3);
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
    const apart = new Comparison(source, summary("new", 1000, 2000, []), summary("base", 400, 2400, []), names, 70);
    expect(apart.origin.params["shift"]).toBe("70");
  });
});

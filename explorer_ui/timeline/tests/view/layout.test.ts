import { describe, expect, it } from "vitest";
import { depthAt, depthPlace, headingId, layOut, rowsBetween, type TrackRow } from "../../src/view/layout.js";
import { track } from "../tracks.js";

const NONE = { pinned: new Set<string>(), collapsed: new Set<string>(), expanded: new Set<string>() };
const tracks = [
  track(0, { id: "host", headings: ["rank 0"] }),
  track(1, { id: "deep", depths: 77 }),
  track(2, { id: "queue", headings: ["rank 0", "NeuronCore 0", "DMA queues"], depths: 2 }),
  track(3, { id: "other", headings: ["rank 1", "NeuronCore 0"] }),
];

function rowOf(layout: ReturnType<typeof layOut>, id: string): TrackRow {
  const row = layout.rows.find((one) => one.id === id);
  if (row?.kind !== "track") throw new Error(`no row ${id}`);
  return row;
}

describe("the layout", () => {
  it("puts each heading once, above its tracks", () => {
    const names = layOut(tracks, NONE).rows.map((row) => (row.kind === "heading" ? `# ${row.name}` : row.id));
    expect(names).toEqual([
      "# rank 0", "host", "# NeuronCore 0", "deep", "# DMA queues", "queue", "# rank 1", "# NeuronCore 0", "other",
    ]);
  });

  it("leaves no gap and no overlap", () => {
    const { rows, height } = layOut(tracks, NONE);
    rows.forEach((row, place) => expect(row.y).toBe(place === 0 ? 0 : rows[place - 1]!.y + rows[place - 1]!.height));
    expect(height).toBe(rows.at(-1)!.y + rows.at(-1)!.height);
  });

  it("closes deep tracks by default, and opens them when asked", () => {
    const closed = rowOf(layOut(tracks, NONE), "deep");
    expect([closed.isOpen, closed.fullRows, closed.thinRows]).toEqual([false, 3, 10]);
    const open = rowOf(layOut(tracks, { ...NONE, expanded: new Set(["deep"]) }), "deep");
    expect([open.isOpen, open.fullRows, open.thinRows]).toEqual([true, 77, 0]);
  });

  it("hides what stands under a closed heading", () => {
    const collapsed = new Set([headingId(["rank 0", "NeuronCore 0"])]);
    const ids = layOut(tracks, { ...NONE, collapsed }).rows.map((row) => row.id);
    expect(ids).not.toContain("deep");
    expect(ids).not.toContain("queue");
    expect(ids).toContain("host");
    expect(ids).toContain("other");
  });

  it("repeats pinned tracks at the top", () => {
    const layout = layOut(tracks, { ...NONE, pinned: new Set(["other"]) });
    expect(layout.pinned.map((row) => row.id)).toEqual(["other"]);
    expect(layout.pinnedHeight).toBe(layout.pinned[0]!.height);
    expect(layout.rows.map((row) => row.id)).toContain("other");
  });

  it("finds the depth at a height, and the height of a depth", () => {
    const row = rowOf(layOut(tracks, NONE), "deep");
    for (const depth of [0, 2, 3, 9]) {
      const place = depthPlace(row, depth);
      expect(depthAt(row, place.top + place.height / 2)).toBe(depth);
    }
    expect(depthPlace(row, 50).height).toBe(0);
    expect(depthAt(row, row.height)).toBeNull();
  });

  it("finds the rows between two heights", () => {
    const { rows } = layOut(tracks, NONE);
    const some = rowsBetween(rows, rows[2]!.y + 1, rows[4]!.y + 1);
    expect(some.map((row) => row.id)).toEqual(rows.slice(2, 5).map((row) => row.id));
  });
});

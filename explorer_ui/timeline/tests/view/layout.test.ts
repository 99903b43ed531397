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

  it("shows operations in charged time, and their spans when asked", () => {
    const plain = track(0, { id: "hlo", level: "hlo", depths: 9 });
    const twin = { ...plain, place: 1 << 19, depths: 1, isCharged: true };
    const both = [{ ...plain, charged: twin }];
    const closed = rowOf(layOut(both, NONE), "hlo");
    expect([closed.track.isCharged, closed.fullRows, closed.thinRows, closed.isOpen]).toEqual([true, 1, 0, false]);
    const open = rowOf(layOut(both, { ...NONE, expanded: new Set(["hlo"]) }), "hlo");
    expect([open.track.isCharged, open.fullRows, open.isOpen]).toEqual([false, 9, true]);
  });

  describe("with idle tracks", () => {
    const queues = ["rank 0", "NeuronCore 0", "DMA queues"];
    const mixed = [
      track(0, { id: "busy" }),
      track(1, { id: "idle one", name: "GpSimd", isIdle: true }),
      track(2, { id: "queue 1", headings: queues, isIdle: true }),
      track(3, { id: "queue 2", headings: queues, isIdle: true }),
      track(4, { id: "busy again" }),
      track(5, { id: "last", name: "Throttling", isIdle: true }),
    ];
    const named = (folding = NONE): string[] => layOut(mixed, folding).rows.map((row) => (row.kind === "heading" ? `# ${row.name}` : row.id));

    it("folds those that follow each other into one thin row, without a heading of their own", () => {
      expect(named()).toEqual(["# rank 0", "# NeuronCore 0", "busy", "# 3 idle tracks", "busy again", "# Throttling, idle"]);
      const folded = layOut(mixed, NONE).rows.find((row) => row.id === "idle:idle one");
      expect(folded?.kind === "heading" && folded.tracks.map((one) => one.id)).toEqual(["idle one", "queue 1", "queue 2"]);
    });

    it("shows them when they are opened, one by one when something in them is gone to, and always when pinned", () => {
      const opened = named({ ...NONE, expanded: new Set(["idle:idle one"]) });
      expect(opened.slice(3, 7)).toEqual(["# 3 idle tracks", "idle one", "queue 1", "queue 2"]);
      expect(named({ ...NONE, expanded: new Set(["queue 1"]) })).toContain("queue 1");
      expect(named({ ...NONE, pinned: new Set(["queue 1"]) })).toContain("queue 1");
    });
  });
});

import { describe, expect, it } from "vitest";
import { lengthOf, moved, ordered, SHORTEST_NS, within, zoomed } from "../../src/view/time_range.js";

const bounds = { startNs: 0, endNs: 1000 };

describe("time ranges", () => {
  it("keep the time under the pointer while zooming", () => {
    const range = zoomed({ startNs: 100, endNs: 300 }, 0.5, 150);
    expect(range).toEqual({ startNs: 125, endNs: 225 });
    expect((150 - range.startNs) / lengthOf(range)).toBeCloseTo(0.25);
  });

  it("stay inside the profile with a small margin", () => {
    expect(within(moved({ startNs: 0, endNs: 200 }, -5000), bounds)).toEqual({ startNs: -20, endNs: 180 });
    expect(within(moved({ startNs: 0, endNs: 200 }, 5000), bounds)).toEqual({ startNs: 820, endNs: 1020 });
  });

  it("never get longer than the profile or shorter than can be shown", () => {
    expect(lengthOf(within({ startNs: -1e9, endNs: 1e9 }, bounds))).toBeCloseTo(1040);
    const short = within({ startNs: 500, endNs: 500.001 }, bounds);
    expect(lengthOf(short)).toBe(SHORTEST_NS);
    expect((short.startNs + short.endNs) / 2).toBeCloseTo(500);
  });

  it("are put in order", () => {
    expect(ordered(7, 3)).toEqual({ startNs: 3, endNs: 7 });
  });
});

import { expect, it } from "vitest";
import { toggleMarker } from "../../src/features/markers.js";
import type { Core } from "../../src/core.js";
import { EMPTY_VIEW, type TimelineView } from "../../src/view/view_state.js";

/** As much of the core as markers touch: 10 ns a pixel. */
function core(view: Partial<TimelineView> = {}): Core {
  const made = {
    view: { ...EMPTY_VIEW, ...view },
    viewport: { width: 100, scale: { nsPerPixel: 10, toNs: (x: number) => x * 10 } },
    update(change: Partial<TimelineView>): void {
      this.view = { ...this.view, ...change };
    },
  };
  return made as unknown as Core;
}

it("puts a marker at a time, and takes it away by a second one near it", () => {
  const one = core();
  toggleMarker(one, 200);
  toggleMarker(one, 800);
  expect(one.view.markers.map((marker) => marker.timeNs)).toEqual([200, 800]);
  toggleMarker(one, 240);
  expect(one.view.markers.map((marker) => marker.timeNs)).toEqual([800]);
});

it("marks the chosen span, or the middle, where the pointer is elsewhere", () => {
  const one = core({ span: { track: "t", row: 1, depth: 0, startNs: 123, durationNs: 4, name: "x" } });
  toggleMarker(one, null);
  expect(one.view.markers[0]?.timeNs).toBe(123);
  const other = core();
  toggleMarker(other, null);
  expect(other.view.markers[0]?.timeNs).toBe(500);
});

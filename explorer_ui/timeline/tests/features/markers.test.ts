import { expect, it } from "vitest";
import { nearest, notedMarker, toggledMarker } from "../../src/features/markers.js";
import type { Marker } from "../../src/view/view_state.js";

const NONE: readonly Marker[] = [];

it("puts a marker at a time, and takes it away by a second one near it", () => {
  const both = toggledMarker(toggledMarker(NONE, 200, 50), 800, 50);
  expect(both.map((marker) => marker.timeNs)).toEqual([200, 800]);
  expect(toggledMarker(both, 240, 50).map((marker) => marker.timeNs)).toEqual([800]);
});

it("writes a note at the nearest marker, or at a new one", () => {
  const both = [
    { timeNs: 200, text: "" },
    { timeNs: 260, text: "b" },
  ];
  expect(notedMarker(both, 240, 50, "slow")).toEqual([both[0], { timeNs: 260, text: "slow" }]);
  expect(notedMarker(both, 900, 50, "here").at(-1)).toEqual({ timeNs: 900, text: "here" });
  expect(nearest(both, 900, 50)).toBeUndefined();
});

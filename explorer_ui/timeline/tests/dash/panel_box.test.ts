import { expect, it } from "vitest";
import { boxOfTimeline } from "../../src/dash/panel_box.js";
import { parseLayout } from "../../src/workspace/layout.js";

const split = (text: string) => parseLayout(text, { has: () => true });

it("has the page for itself, below the steps where there are some", () => {
  expect(boxOfTimeline(1280, 800, null, "timeline", true)).toEqual({ left: 168, top: 84, width: 1112, height: 716 });
  expect(boxOfTimeline(1280, 800, null, "timeline", false)).toEqual({ left: 168, top: 44, width: 1112, height: 756 });
});

it("has its share of the columns, and of its column's rows, with gaps between", () => {
  const box = boxOfTimeline(1018, 809, split("50:(25:source;75:timeline*.hierarchy);50:advice"), "timeline", true);
  expect(box).toEqual({ left: 6, top: 157 + 160 + 6, width: 500, height: 480 });
  expect(boxOfTimeline(1018, 809, split("50:advice;50:timeline"), "timeline", true)).toEqual({ left: 512, top: 157, width: 500, height: 646 });
});

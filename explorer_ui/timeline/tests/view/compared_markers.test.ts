import { expect, it } from "vitest";
import { comparedMarkers } from "../../src/view/compared_markers.js";
import { signedText } from "../../src/view/time_text.js";

const at = (timeNs: number, text = "") => ({ timeNs, text });

it("lays another run's markers beside ours, from the first note that both have", () => {
  const own = [at(1_000, "forward"), at(1_500, "backward"), at(1_900, "step")];
  const other = [at(70, "backward"), at(20, "forward"), at(90, "step")];
  expect(comparedMarkers(own, other)).toEqual([
    { timeNs: 1_000, text: "forward", own: own[0], laterNs: 0 },
    { timeNs: 1_050, text: "backward", own: own[1], laterNs: 450 },
    { timeNs: 1_070, text: "step", own: own[2], laterNs: 830 },
  ]);
});

it("compares markers without notes in their order", () => {
  const found = comparedMarkers([at(10), at(30)], [at(110), at(125), at(190)]);
  expect(found.map(({ timeNs, text, laterNs }) => [timeNs, text, laterNs])).toEqual([
    [10, "1", 0],
    [25, "2", 5],
    [90, "3", null],
  ]);
});

it("never takes a note for another one", () => {
  expect(comparedMarkers([at(10, "a")], [at(5, "b")])).toEqual([{ timeNs: 5, text: "b", own: null, laterNs: null }]);
});

it("writes differences with their sign", () => {
  expect([signedText(-1_200_000), signedText(450)]).toEqual(["−1.200 ms", "+450 ns"]);
});

import { expect, it } from "vitest";
import { rangeCsv } from "../../src/features/range_csv.js";

it("writes tracks and names with bare numbers, and no formulas", () => {
  const tracks = [{ track: 1, count: 50, busy_share: 0.25, span_ns: 250 }];
  const names = [{ name: '=SUM("A1")', count: 3, time_ns: 30, longest_ns: 12 }];
  expect(rangeCsv(tracks, (place) => `T${place}, rank 0`, names, "Tensor").split("\r\n")).toEqual([
    "track,name,spans,busy_share,time_ns,longest_ns",
    '"T1, rank 0",,50,0.25,250,',
    `Tensor,"'=SUM(""A1"")",3,,30,12`,
    "",
  ]);
});

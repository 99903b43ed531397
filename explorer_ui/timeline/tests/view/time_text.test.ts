import { describe, expect, it } from "vitest";
import { axisBase, countText, durationText, exactText, shareText, tickText, ticks, valueText } from "../../src/view/time_text.js";

describe("texts of quantities", () => {
  it.each([
    [0, "0 ns"],
    [7, "7 ns"],
    [1234, "1.234 µs"],
    [12_340_000, "12.34 ms"],
    [2e9, "2 s"],
  ])("writes %d ns as %s", (ns, text) => expect(durationText(ns)).toBe(text));

  it("writes times to the nanosecond", () => {
    expect(exactText(1_234_567_890)).toBe("1.234567890 s");
    expect(exactText(1_500)).toBe("1.500 µs");
  });

  it("gives ticks no more digits than tell them apart", () => {
    expect(tickText(2_600_000, 20_000)).toBe("2.60 ms");
    expect(tickText(5_000_000, 5_000_000)).toBe("5 ms");
  });

  it("puts ticks at round steps far enough apart", () => {
    const { stepNs, first } = ticks(2_600_000, 2_750_000, 100);
    expect(stepNs).toBe(20_000);
    expect(first * stepNs).toBeLessThanOrEqual(2_600_000);
    expect(stepNs / 100).toBeGreaterThanOrEqual(110);
  });

  it("writes counts, shares and values of counters", () => {
    expect(countText(1234567)).toBe("1,234,567");
    expect(shareText(0.034)).toBe("3.4 %");
    expect(shareText(0.61)).toBe("61 %");
    expect(valueText(1.25e9, "bytes/s")).toBe("1.250 GB/s");
    expect(valueText(0.5, "fraction")).toBe("50 %");
  });
});

it("counts on an axis far from the start from a round time at its left", () => {
  expect(axisBase(2_468_450_000, 2_468_686_000, 50_000)).toBe(2_468_000_000);
  expect(axisBase(2_468_450_000, 2_468_450_100, 10)).toBe(2_468_450_000);
  expect(axisBase(1_000_000, 5_000_000, 1_000_000)).toBe(0);
  expect(axisBase(-500, 2_000_000_000, 10)).toBe(0);
});

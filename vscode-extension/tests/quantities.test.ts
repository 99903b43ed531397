import { describe, expect, it } from "vitest";
import { bytes, count, duration, percent } from "../src/text/quantities";

describe("duration", () => {
  it.each([
    [0, "0 ns"],
    [8, "8 ns"],
    [999, "999 ns"],
    [999.7, "1.00 µs"],
    [4156, "4.16 µs"],
    [75_000, "75.0 µs"],
    [197_140, "197 µs"],
    [999_600, "1.00 ms"],
    [1_437_564, "1.44 ms"],
    [41_000_000_000, "41.0 s"],
    [-2500, "-2.50 µs"],
  ])("writes %d ns as %s", (ns, text) => expect(duration(ns)).toBe(text));
});

describe("bytes, percent, count", () => {
  it("uses powers of ten", () => {
    expect(bytes(18_366_464)).toBe("18.4 MB");
    expect(bytes(16)).toBe("16 B");
  });

  it("never shows a small share as none", () => {
    expect(percent(0.374882)).toBe("37.5 %");
    expect(percent(0.0001)).toBe("<0.1 %");
    expect(percent(0)).toBe("0.0 %");
  });

  it("separates thousands", () => expect(count(1_234_567)).toBe("1,234,567"));
});

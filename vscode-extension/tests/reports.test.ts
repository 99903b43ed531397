import { describe, expect, it } from "vitest";
import type { Finding } from "../src/server/answers";
import { evidenceRows, gainText, isSameFinding, measuredText, whatIfText } from "../src/text/finding_text";
import { differenceMarkdown, findingMarkdown, queryText } from "../src/text/reports";

const FINDING: Finding = {
  rule: "fp32_matmul",
  title: "Matrix products in <b>fp32</b>",
  change: "Use bf16.",
  place: { file: "/p/train.py", line: 14, function: "f", module: "/m", operation: "aten::mm" },
  gain_ns: 33_000,
  device_gain_ns: 30_000,
  total_ns: 1_000_000,
  gain: 0.033,
  what_if: "dtype=bf16",
  library_place: { file: "", line: 0, function: "", module: "", operation: "" },
  has_editor: true,
  evidence: { wait_ns: 12_500, busy_share: 0.45, executions: 6900, dtype: "f32" },
};

describe("queryText", () => {
  it("aligns numbers to the right and texts to the left", () => {
    const text = queryText("SELECT 1", { columns: ["engine", "n"], rows: [["Tensor", 5], ["DMA", 1234]], row_count: 2 });
    expect(text.split("\n").slice(2, 6)).toEqual(["engine     n", "──────  ────", "Tensor     5", "DMA     1234"]);
    expect(text).toContain("(2 rows)");
  });

  it("says that rows are left out, and cuts cells", () => {
    const text = queryText("SELECT x", { columns: ["x"], rows: [["y".repeat(9999)]], row_count: 70_000 });
    expect(text).toContain("first 1 of 70000 rows");
    expect(text.length).toBeLessThan(400);
  });
});

describe("differenceMarkdown", () => {
  it("has the largest changes first", () => {
    const key = (operation: string): { module: string; operation: string; backward: boolean } => ({ module: "/m", operation, backward: false });
    const text = differenceMarkdown("a", "b", {
      base_device_ns: 1000, new_device_ns: 1500, delta_device_ns: 500,
      deltas: [
        { key: key("small"), change: "slower", base_ns: 1, new_ns: 2, delta_ns: 1 },
        { key: key("large"), change: "slower", base_ns: 1, new_ns: 500, delta_ns: 499 },
        { key: key("same"), change: "same", base_ns: 1, new_ns: 1, delta_ns: 0 },
      ],
    });
    expect(text).toContain("Base: a. New: b.");
    expect(text).toContain("**+500 ns** (50.0 %)");
    expect(text.indexOf("large")).toBeLessThan(text.indexOf("small"));
    expect(text).not.toContain("| same");
  });
});

describe("findings", () => {
  it("have evidence with units", () =>
    expect(evidenceRows(FINDING)).toEqual([
      ["wait", "12.5 µs"],
      ["busy", "45.0 %"],
      ["executions", "6,900"],
      ["dtype", "f32"],
    ]));

  it("have a gain, or say that it was not simulated", () => {
    expect(gainText(FINDING)).toBe("Gain: 33.0 µs of the program (3.3 %)");
    expect(gainText({ ...FINDING, gain_ns: null })).toBe("Gain: not simulated");
  });

  it("show no markup of the profile's", () => expect(findingMarkdown(FINDING)).toContain("\\<b\\>"));

  it("tell what a change would give", () =>
    expect(
      whatIfText({
        change: "dtype=bf16", device_ns: 526_000, device_after_ns: 390_000, total_ns: 1_440_000, total_after_ns: 1_300_000,
        total_gain_ns: 140_000, total_gain: 0.0972,
      }),
    ).toBe("With dtype=bf16: program 1.44 ms → 1.30 ms, saves 9.7 %; device 526 µs → 390 µs"));
});

describe("measuredText", () => {
  const measured = { rule: "r", line: 1, measured_ns: 396_000, before_ns: 3_910_000, values_equal: true, values_compared: 1312 };

  it("tells gain, share and whether values are equal", () => {
    expect(measuredText(measured)).toBe("Measured: 396 µs (10.1 %), 1,312 values equal");
    expect(measuredText({ ...measured, measured_ns: -5000, values_equal: false })).toBe("Measured: 5.00 µs slower, 1,312 values differ");
  });

  it("knows a finding by its rule and place", () => {
    expect(isSameFinding(FINDING, { ...FINDING, gain_ns: 1 })).toBe(true);
    expect(isSameFinding(FINDING, { ...FINDING, place: { ...FINDING.place, line: 15 } })).toBe(false);
  });
});

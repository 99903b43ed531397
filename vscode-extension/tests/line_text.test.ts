import { describe, expect, it } from "vitest";
import type { FunctionWork, LineWork, Work } from "../src/server/answers";
import { changeText, engineText, functionText, lineMarkdown, lineText, predictedText, staleText } from "../src/text/line_text";

const WORK: Work = {
  device_ns: 197_140,
  share: 0.3749,
  backward_ns: 91_260,
  calls: 20,
  instructions: 476,
  hbm_bytes: 18_366_464,
  flops: 268_435_456,
  engine_ns: { GpSimd: 1204, Scalar: 25_372, Sync: 576, Tensor: 136_696, Vector: 29_208 },
};
const LINE: LineWork = { ...WORK, line: 14, own_code: WORK, total: WORK };
const FUNCTION: FunctionWork = {
  ...WORK, name: "f", line: 1, first: 1, last: 9, is_kernel: false, own_code: WORK,
  total: { ...WORK, device_ns: 526_000, share: 1, mfu: 0.0162 },
};

describe("lineText", () => {
  it("shows what is chosen, in its order", () => {
    expect(lineText(WORK, ["time", "share", "instructions", "bytes", "engines"])).toBe(
      "197 µs · 37.5 % · 476 instr · 18.4 MB · Tensor 71 %, Vector 15 %, Scalar 13 %",
    );
    expect(lineText(WORK, ["share"])).toBe("37.5 %");
  });

  it("leaves out what there is none of", () =>
    expect(lineText({ ...WORK, instructions: 0, hbm_bytes: 0, engine_ns: {} }, ["time", "instructions", "bytes", "engines"])).toBe("197 µs"));

  it("splits among engines", () => expect(engineText(WORK, 1)).toBe("Tensor 71 %"));
});

describe("changeText", () => {
  const before = (ns: number): Work => ({ ...WORK, device_ns: ns });

  it("says what became of a line's time", () => {
    expect(changeText(WORK, before(166_140))).toBe("+31.0 µs, +18.7 %");
    expect(changeText(WORK, before(394_280))).toBe("-197 µs, -50.0 %");
    expect(changeText(WORK, before(197_150))).toBe("as before");
    expect(changeText(WORK, before(0))).toBe("new");
    expect(changeText(before(0), WORK)).toBe("was 197 µs");
  });

  it("stands before the costs, or in their place", () => {
    expect(lineText(WORK, ["time", "share"], before(166_140))).toBe("+31.0 µs, +18.7 % · 197 µs · 37.5 %");
    expect(lineText(before(0), ["time", "share"], WORK)).toBe("was 197 µs");
    expect(lineText(WORK, ["time"])).toBe("197 µs");
  });

  it("has a sentence in the hover", () => {
    const row = { line: 13, recordedLine: 14, work: LINE, shown: LINE, before: before(166_140) };
    expect(lineMarkdown(row, "same", "new.nprof", [], "base.nprof")).toContain("In base\\.nprof: 166 µs; +31.0 µs, +18.7 %");
  });
});

describe("functionText", () => {
  it("has total, share, own time and MFU", () =>
    expect(functionText(FUNCTION)).toBe("526 µs · 100.0 % · own 197 µs · MFU 1.6 %"));

  it("names kernels, and leaves out an MFU without FLOPs", () =>
    expect(functionText({ ...FUNCTION, is_kernel: true, total: { ...FUNCTION.total, device_ns: 197_140, flops: 0 } })).toBe(
      "kernel 197 µs · 100.0 %",
    ));
});

describe("lineMarkdown", () => {
  it("says that a line moved", () => {
    const text = lineMarkdown({ line: 20, recordedLine: 14, work: LINE, shown: LINE }, "moved", "train.nprof", ["[go](x)"]);
    expect(text).toContain("It was line 14.");
    expect(text).toContain("| Device time | 197 µs, 37.5 % | 197 µs, 37.5 % | 197 µs, 37.5 % |");
    expect(text).toContain("| Computed | 268 MFLOP | 268 MFLOP | 268 MFLOP |");
    expect(text).toContain("Busy: Tensor 137 µs · Vector 29.2 µs · Scalar 25.4 µs · GpSimd 1.20 µs · Sync 576 ns");
    expect(text.split("\n")[0]).toContain("· [go](x)");
  });

  it("leaves out what a line and what it calls do not have", () => {
    const idle = { ...WORK, backward_ns: 0, flops: 0, engine_ns: {} };
    const text = lineMarkdown({ line: 13, recordedLine: 14, work: { ...idle, line: 14, own_code: idle, total: idle }, shown: idle }, "same", "p");
    expect(text).not.toMatch(/Backward|Computed|Busy|line 14/);
  });

  it("has no markup of the profile's", () =>
    expect(lineMarkdown({ line: 13, recordedLine: 14, work: LINE, shown: LINE }, "same", "[x](command:y)")).not.toContain("](command"));
});

describe("predictedText", () => {
  it("tells what the kernels take as they read now", () => {
    const text = predictedText({ kernels: ["softmax", "matmul"], beforeNs: 42_300, afterNs: 35_100 });
    expect(text).toBe("As it reads now: softmax, matmul 42.3 µs → 35.1 µs, -17.0 %");
  });

  it("says when nothing changes", () =>
    expect(predictedText({ kernels: ["k"], beforeNs: 100, afterNs: 100 })).toBe("As it reads now: k 100 ns → 100 ns, no change"));
});

describe("staleText", () => {
  it("says nothing of the file that ran", () => expect(staleText({ freshness: "same", lost: 0 }, "a.nprof")).toBeUndefined());

  it("says what changed", () => {
    expect(staleText({ freshness: "moved", lost: 0 }, "a.nprof")).toBe("Changed since a.nprof was captured");
    expect(staleText({ freshness: "moved", lost: 1 }, "a.nprof")).toContain("; 1 line with cost is gone");
    expect(staleText({ freshness: "moved", lost: 2 }, "a.nprof")).toContain("; 2 lines with cost are gone");
    expect(staleText({ freshness: "unknown", lost: 0 }, "a.nprof")).toContain("may stand at other lines");
  });
});

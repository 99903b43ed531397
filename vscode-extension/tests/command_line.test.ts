import { describe, expect, it } from "vitest";
import { captureArguments, freeOutput, splitArguments } from "../src/commands/command_line";

describe("splitArguments", () => {
  it.each([
    ["", []],
    ["  --epochs 1  ", ["--epochs", "1"]],
    [`--name "two words" 'it''s'`, ["--name", "two words", "its"]],
    [`a\\ b "c\\"d" 'e\\f'`, ["a b", 'c"d', "e\\f"]],
    [`--empty "" x`, ["--empty", "", "x"]],
    ["$(rm -rf /) `x`; y", ["$(rm", "-rf", "/)", "`x`;", "y"]],
  ])("splits %j", (text, parts) => expect(splitArguments(text)).toEqual(parts));
});

describe("freeOutput", () => {
  it("counts up past what is there", () => {
    const there = new Set(["/w/train.nprof", "/w/train-2.nprof"]);
    expect(freeOutput("/w/src/train.py", "/w", (path) => there.has(path))).toBe("/w/train-3.nprof");
    expect(freeOutput("/w/other.py", "/w", (path) => there.has(path))).toBe("/w/other.nprof");
  });
});

describe("captureArguments", () => {
  it("runs notebooks with our runner, which records a single cell itself", () => {
    const ofScript = (request: { script: string; cell?: number }): string => captureArguments(request, "python", "/w/o", "trn2", []).join(" ");
    expect(ofScript({ script: "a.ipynb" })).toBe(
      "-m neuron_profile.cli capture -o /w/o --target trn2 -- python -m neuron_tools.notebook a.ipynb",
    );
    expect(ofScript({ script: "a.ipynb", cell: 3 })).toBe("-m neuron_tools.notebook a.ipynb --cell 3 -o /w/o --target trn2");
    expect(freeOutput("/w/a.ipynb", "/w", () => false)).toBe("/w/a.nprof");
  });

  it("passes the script's arguments as they are", () =>
    expect(captureArguments({ script: "/w/a b.py", args: ["--x", "; y"] }, "python", "/w/a.nprof", "trn2", ["--host-clock", "fixed"])).toEqual([
      "-m", "neuron_profile.cli", "capture", "-o", "/w/a.nprof", "--target", "trn2", "--host-clock", "fixed",
      "--", "python", "/w/a b.py", "--x", "; y",
    ]));

  it("prefers the task's own target", () =>
    expect(captureArguments({ script: "a.py", target: "inf2" }, "python", "a.nprof", "trn2", [])).toContain("inf2"));
});

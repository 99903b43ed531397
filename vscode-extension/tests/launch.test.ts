import { describe, expect, it } from "vitest";
import { deviceArguments, moduleFiles, readCommand, startFolder } from "../src/debug/launch";
import { stopText } from "../src/text/stop_text";

describe("readCommand", () => {
  it("finds the script behind Python's own options", () => {
    expect(readCommand(["/env/bin/python3.11", "-u", "-X", "dev", "train.py", "--steps", "3"])).toEqual({
      script: "train.py",
      args: ["--steps", "3"],
    });
  });

  it("finds a module", () => {
    expect(readCommand(["python", "-m", "project.train", "-v"])).toEqual({ module: "project.train", args: ["-v"] });
    expect(moduleFiles("project.train")).toEqual(["project/train.py", "project/train/__main__.py"]);
    expect(moduleFiles("../evil")).toEqual([]);
  });

  it("refuses what is no program of Python's, or no file", () => {
    const refused = [["torchrun", "train.py"], ["python", "-c", "evil()"], ["python"], ["python", "-m"], []];
    expect(refused.map(readCommand)).toEqual(refused.map(() => undefined));
  });
});

describe("startFolder", () => {
  it("is where the command named the script as it did", () => {
    expect(startFolder("/work/a/b/train.py", "b/train.py", "/work")).toBe("/work/a");
    expect(startFolder("/work/a/train.py", "./train.py", "/work")).toBe("/work/a");
  });

  it("is the workspace's where that does not fit", () => {
    expect(startFolder("/work/a/train.py", "/ci/a/train.py", "/work")).toBe("/work");
    expect(startFolder("/other/train.py", "train.py", "/work")).toBe("/work");
  });
});

describe("deviceArguments", () => {
  it("run a script or a module on the simulated device", () => {
    expect(deviceArguments({ program: "/w/train.py", args: ["1"] }, "trn2")).toEqual(["--target", "trn2", "/w/train.py", "1"]);
    expect(deviceArguments({ module: "train", target: "trn1" }, "trn2")).toEqual(["--target", "trn1", "-m", "train"]);
  });
});

describe("stopText", () => {
  const place = { file: "/w/train.py", line: 8 };

  it("tells which execution is meant, and how slow it was", () => {
    const stop = { place, hit: 3, number: 3, executions: 4, cost_ns: 95_900, typical_ns: 20_000 };
    expect(stopText(stop, "train.py", 8)).toBe(
      "The debugger stops at train.py:8, execution 3 of 4 (95.9 µs, typical: 20.0 µs)",
    );
    expect(stopText({ ...stop, number: 1, executions: 1 }, "train.py", 8)).toContain("its only execution (95.9 µs)");
  });

  it("says where executions are not known", () => {
    const stop = { place, hit: 0, number: 0, executions: 0, cost_ns: 0, typical_ns: 0 };
    expect(stopText(stop, "train.py", 8)).toContain("where train.py:8 is run first");
  });
});

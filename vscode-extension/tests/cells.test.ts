import { describe, expect, it } from "vitest";
import { captureOf, comparableLines, isCell, likeness, numberedCell } from "../src/source/cells";

describe("names of cells", () => {
  it("tell the notebook and the number where we ran it", () => {
    expect(numberedCell("/work/train.ipynb#12")).toEqual({ notebook: "/work/train.ipynb", number: 12 });
    expect(numberedCell("/work/train.ipynb")).toBeUndefined();
  });

  it("are known where Jupyter or a shell made them", () => {
    expect(["/tmp/ipykernel_71/4012.py", "<ipython-input-1-0f>", "/w/a.ipynb#1"].every(isCell)).toBe(true);
    expect(["/work/train.py", "/tmp/ipykernel/x.py", "<string>"].some(isCell)).toBe(false);
  });
});

describe("likeness", () => {
  it("is whole without the magic above, for what IPython makes of magics, and for blanks at the end", () => {
    expect(likeness("x = 1\ny = 2\n", "%%neuron_profile -o a.nprof\nx = 1\ny = 2")).toBe(1);
    expect(likeness("get_ipython().run_line_magic('pwd', '')\nx = 1\n", "%pwd\nx = 1  ")).toBe(1);
    expect(comparableLines("%%time\n!ls\n")).toEqual(["%"]);
  });

  it("falls with what is gone, and is never whole then", () => {
    expect(likeness("a\nb\nc\nd", "a\nb\nc\ne")).toBeCloseTo(0.75);
    expect(likeness("", "a")).toBe(0);
  });
});

describe("captureOf", () => {
  const captured = [{ text: "a\nb\n" }, { text: "a\nb\nc\n" }, { text: null }];

  it("takes the same text before one that is alike", () => {
    expect(captureOf("a\nb\nc", captured)).toBe(captured[1]);
    expect(captureOf("a\nb", captured)).toBe(captured[0]);
  });

  it("takes of equal ones the last, and of none that is alike none", () => {
    const twice = [{ text: "a" }, { text: "a" }];
    expect(captureOf("a", twice)).toBe(twice[1]);
    expect(captureOf("x\ny\nz", captured)).toBeUndefined();
  });
});

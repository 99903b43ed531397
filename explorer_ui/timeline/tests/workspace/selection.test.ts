import { describe, expect, it } from "vitest";
import { chosenText, highlightOf, isRelated, parseChosen, placeOf, type Related } from "../../src/workspace/selection.js";

const RELATED: Related = {
  title: "step 2",
  device_ns: 5,
  total_ns: 10,
  operations: { "aten::mm": 5 },
  modules: { "/model/layers/0": 5 },
  lines: { "/a/b.py:7": 5 },
};

describe("a selection", () => {
  it("is the same after it was written and read", () => {
    for (const text of ["operation:aten::mm", "module:/model/layers/0", "line:/a/b.py:7"]) {
      expect(chosenText(parseChosen(text)!)).toBe(text);
    }
    expect(parseChosen("rank:1")).toBeNull();
    expect(parseChosen("line:")).toBeNull();
  });

  it("lights up the timeline and names a place", () => {
    expect(highlightOf({ kind: "line", key: "/a/b.py:7" })).toEqual({ by: "line", value: "/a/b.py:7", label: "b.py:7" });
    expect(placeOf({ kind: "line", key: "/a/b.py:7" })).toEqual({ file: "/a/b.py", line: "7" });
    expect(placeOf({ kind: "module", key: "/a:7" })).toBeNull();
  });

  it("takes what belongs to it with it, and what encloses that", () => {
    const chosen = { kind: "operation", key: "aten::mm" } as const;
    expect(isRelated({ kind: "line", key: "/a/b.py:7" }, chosen, RELATED)).toBe(true);
    expect(isRelated({ kind: "module", key: "/model" }, chosen, RELATED)).toBe(true);
    expect(isRelated({ kind: "operation", key: "aten::sum" }, chosen, RELATED)).toBe(false);
    expect(isRelated({ kind: "module", key: "/model/layers/0/mlp" }, { kind: "module", key: "/model/layers/0" }, null)).toBe(true);
  });
});

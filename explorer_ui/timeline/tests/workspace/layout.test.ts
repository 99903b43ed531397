import { describe, expect, it } from "vitest";
import { layoutText, namesIn, parseLayout } from "../../src/workspace/layout.js";

const KNOWN = new Set(["timeline", "operators", "source", "advice"]);

describe("a layout", () => {
  it("is the same after it was written and read", () => {
    const text = "60:(64:timeline.operators*;36:advice);40:source";
    const split = parseLayout(text, KNOWN)!;
    expect(layoutText(split)).toBe(text);
    expect(namesIn(split)).toEqual(["timeline", "operators", "advice", "source"]);
  });

  it("is written in whole percents, whatever it was measured in", () => {
    const group = { tabs: ["source"], active: "source" };
    expect(layoutText({ parts: [{ share: 401, node: group }, { share: 802, node: { tabs: ["advice"], active: "advice" } }] })).toBe("33:source;67:advice");
  });

  it.each(["", "60", "60:", "60:nothing", "50:source;50:source", "50:(50:source", "0:source", "50:source)", "50:source;"])(
    "that makes no sense is none: %s",
    (text) => expect(parseLayout(text, KNOWN)).toBeNull(),
  );
});

// @vitest-environment jsdom
import { afterEach, describe, expect, it } from "vitest";
import { Marks, shownBy } from "../../src/workspace/marks.js";

const LINE = "line:/home/me/train.py:27";

function row(name: "select" | "shows"): HTMLElement {
  const place = document.createElement("div");
  place.dataset[name] = LINE;
  return place;
}

afterEach(() => document.body.replaceChildren());

describe("what belongs to a selection", () => {
  it.each(["select", "shows"] as const)("is told by data-%s", (name) => {
    expect(shownBy(row(name))).toEqual({ kind: "line", key: "/home/me/train.py:27" });
  });

  it("is marked on a line that takes no time and cannot be clicked", () => {
    const panel = document.createElement("div");
    const line = row("shows");
    panel.append(line);
    document.body.append(panel);
    const marks = new Marks([panel], () => undefined);
    marks.show({ kind: "line", key: "/home/me/train.py:27" }, null, false);
    expect(line.classList.contains("is-chosen")).toBe(true);
    marks.show(null, null, false);
    expect(line.classList.contains("is-chosen")).toBe(false);
    marks.destroy();
  });
});

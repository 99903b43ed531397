import { describe, expect, it } from "vitest";
import { followLines, splitLines } from "../src/source/line_map";

const follow = (before: string, after: string): number[] => [...followLines(before.split(""), after.split(""))];

describe("followLines", () => {
  it("keeps the lines of an equal text", () => expect(follow("abc", "abc")).toEqual([0, 1, 2]));

  it("shifts lines below an insertion", () => expect(follow("abc", "xaybc")).toEqual([1, 3, 4]));

  it("loses deleted and changed lines", () => expect(follow("abcd", "axd")).toEqual([0, -1, -1, 2]));

  it("follows the classic example along a shortest edit", () => {
    const places = follow("abcabba", "cbabac");
    const kept = places.filter((place) => place >= 0);
    expect(kept).toEqual([...kept].sort((one, other) => one - other));
    expect(kept).toHaveLength(4);
  });

  it("follows a block that was moved", () => {
    const before = ["def a():", "  first()", "  second()", "def b():", "  third()"];
    const after = ["def b():", "  third()", "def a():", "  first()", "  second()"];
    expect([...followLines(before, after)]).toEqual([2, 3, 4, 0, 1]);
  });

  it("does not guess where a repeated line went", () => {
    expect([...followLines(["pass", "one", "pass"], ["pass", "pass", "two"])]).toEqual([0, -1, 1]);
    expect([...followLines(["same()", "x", "same()"], ["y"])]).toEqual([-1, -1, -1]);
  });

  it("gives up shortest edits of unlike texts, but follows moves", () => {
    const before = Array.from({ length: 3000 }, (_, line) => `old ${line}`);
    const after = Array.from({ length: 3000 }, (_, line) => `new ${line}`);
    after[17] = "old 2500";
    const places = followLines(before, after);
    expect(places[2500]).toBe(17);
    expect(places.filter((place) => place >= 0)).toHaveLength(1);
  });

  it("pairs only equal lines, each once, whatever the texts", () => {
    let seed = 7;
    const random = (limit: number): number => (seed = (seed * 1103515245 + 12345) % 2147483648) % limit;
    for (let round = 0; round < 200; round += 1) {
      const text = (): string[] => Array.from({ length: random(30) }, () => `line ${random(12)}`);
      const [before, after] = [text(), text()];
      const places = followLines(before, after);
      const found = [...places.entries()].filter(([, place]) => place >= 0);
      for (const [line, place] of found) expect(after[place]).toBe(before[line]);
      expect(new Set(found.map(([, place]) => place)).size).toBe(found.length);
    }
  });
});

describe("splitLines", () => {
  it("takes every ending", () => expect(splitLines("a\nb\r\nc\rd")).toEqual(["a", "b", "c", "d"]));
});

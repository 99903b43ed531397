import { describe, expect, it } from "vitest";
import { readMessage } from "../src/timeline/messages";

const REQUEST = { type: "request", id: 1, path: "timeline", params: { tracks: "1,4-7" } };

describe("readMessage", () => {
  it("takes what the page says", () => {
    expect(readMessage(REQUEST)).toEqual(REQUEST);
    expect(readMessage({ type: "ready", page: "a-1", isNew: true, more: 1 })).toEqual({ type: "ready", page: "a-1", isNew: true });
    const view = { range: { startNs: 1, endNs: 2 } };
    expect(readMessage({ type: "view", view, savedAt: 5, more: 1 })).toEqual({ type: "view", view, savedAt: 5 });
    expect(readMessage({ type: "cancel", id: 3 })).toEqual({ type: "cancel", id: 3 });
    const range = { type: "range", range: { startNs: 5, endNs: 9 } };
    expect(readMessage(range)).toEqual(range);
    expect(readMessage({ type: "range", range: null })).toEqual({ type: "range", range: null });
    expect(readMessage({ type: "select", span: null })).toEqual({ type: "select", span: null });
    expect(readMessage({ type: "select", span: { track: "p0", row: 7, name: "x" } })).toEqual({
      type: "select",
      span: { track: "p0", row: 7 },
    });
  });

  it.each([
    null,
    "ready",
    [],
    { type: "other" },
    { type: "ready" },
    { type: "ready", page: "../x", isNew: false },
    { type: "view", view: [], savedAt: 1 },
    { type: "view", view: {}, savedAt: "1" },
    { type: "view", view: { search: "x".repeat(100_000) }, savedAt: 1 },
    { ...REQUEST, path: "../api/editor/profiles" },
    { ...REQUEST, path: "a/b" },
    { ...REQUEST, id: "1" },
    { ...REQUEST, params: { tracks: 1 } },
    { ...REQUEST, params: ["x"] },
    { ...REQUEST, params: { text: "x".repeat(100_000) } },
    { ...REQUEST, params: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`p${n}`, ""])) },
    { type: "select", span: { track: 7, row: 1 } },
    { type: "select", span: { track: "t", row: Number.NaN } },
    { type: "range", range: { startNs: 9, endNs: 5 } },
    { type: "range", range: { startNs: "0", endNs: 5 } },
    { type: "cancel" },
    { type: "source", file: 7, line: 1 },
    { type: "source", file: "x".repeat(5000), line: 1 },
  ])("refuses %j", (message) => expect(readMessage(message)).toBeUndefined());
});

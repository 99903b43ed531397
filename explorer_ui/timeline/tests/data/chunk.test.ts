import { describe, expect, it } from "vitest";
import { readSpanTiles } from "../../src/data/chunk.js";
import { NameTable } from "../../src/data/names.js";
import { spanAnswer } from "../tracks.js";

const LEVEL = 3; // buckets of 8 ns

describe("chunks of spans", () => {
  const names = new NameTable();
  const answer = spanAnswer([
    { track: 4, start: 16, duration: 400, name: "matmul", row: 7 },
    { track: 4, depth: 1, start: 24, duration: 3, count: 5, busy: 128, isBucket: true, name: "copy" },
    { track: 9, start: -800_000, duration: 4_000_000, name: "step" },
  ]);
  const tile = readSpanTiles(answer, LEVEL, names).get(0);

  it("are split by track", () => {
    expect([...tile!.keys()]).toEqual([4, 9]);
    expect(tile!.get(4)!.length).toBe(2);
  });

  it("know names, rows and counts", () => {
    const chunk = tile!.get(4)!;
    expect(names.text(chunk.name[0]!)).toBe("matmul");
    expect(chunk.row[0]).toBe(7);
    expect(chunk.count[1]).toBe(5);
  });

  it("have shapes in buckets: spans of full height, buckets as high as they are busy", () => {
    const { edges, looks } = tile!.get(4)!.shapes;
    expect([...edges]).toEqual([2, 52, 3, 4]);
    expect([(looks[0]! >>> 16) & 255, (looks[1]! >>> 16) & 255]).toEqual([255, 128]);
    expect([looks[0]! & 255, looks[1]! & 255]).toEqual([0, 1]);
  });

  it("cut shapes that reach far out, so that they stay exact in single precision", () => {
    const { edges } = tile!.get(9)!.shapes;
    expect(edges[0]).toBe(-4096);
    expect(edges[1]).toBe(4096 + 1024);
  });

  it("have the colour that the answer tells, else that of their name", () => {
    const rows = [{ track: 4, start: 0, duration: 9, name: "a" }, { track: 4, start: 9, duration: 9, name: "b" }];
    const slots = (answer: ArrayBuffer): number[] =>
      [...readSpanTiles(answer, LEVEL, names, () => 2).get(0)!.get(4)!.shapes.looks].map((look) => (look >>> 8) & 255);
    expect(slots(spanAnswer(rows))).toEqual([2, 2]);
    expect(slots(spanAnswer(rows, [5, 7]))).toEqual([5, 7]);
  });

  it("list the spans that have room for a text", () => {
    expect([...tile!.get(4)!.wide]).toEqual([0]);
  });

  it("are split by tile, also where some tiles are empty", () => {
    const rows = [
      { tile: 1, track: 4, start: 0, duration: 9 },
      { tile: 3, track: 4, start: 0, duration: 9 },
    ];
    expect([...readSpanTiles(spanAnswer(rows), LEVEL, names).keys()]).toEqual([1, 3]);
    expect(readSpanTiles(spanAnswer([]), LEVEL, names).size).toBe(0);
  });
});

// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CanvasPainter } from "../../src/draw/canvas_painter.js";
import { inkTable } from "../../src/draw/inks.js";
import type { Strip } from "../../src/draw/painter.js";
import { parseColour, PALETTES } from "../../src/draw/palette.js";
import { FULL, look, type Shapes } from "../../src/draw/shapes.js";
import { LIGHT } from "../../src/draw/theme.js";

class FakeImage {
  readonly data: Uint8ClampedArray;
  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    this.data = new Uint8ClampedArray(4 * width * height);
  }
}

let shown: FakeImage;
const pen = {
  setTransform: () => undefined,
  putImageData: (image: FakeImage) => (shown = image),
};

beforeEach(() => {
  vi.stubGlobal("ImageData", FakeImage);
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(pen as unknown as null);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const shapes = (...list: [number, number, number][]): Shapes => ({
  count: list.length,
  edges: Float32Array.from(list.flatMap(([left, right]) => [left, right])),
  looks: Uint32Array.from(list, (one) => one[2]),
});

const strip = (one: Shapes, change: Partial<Strip> = {}): Strip => ({
  shapes: one,
  originX: 0,
  bucketPixels: 1,
  clipLeft: 0,
  clipRight: 20,
  top: 0,
  fullRows: 1,
  rowHeight: 11,
  thinRows: 0,
  thinHeight: 3,
  ink: "plain",
  ...change,
});

function painted(...strips: Strip[]): (x: number, y: number) => number[] {
  const painter = new CanvasPainter();
  painter.resize(20, 24, 1);
  painter.setInks(inkTable(LIGHT));
  painter.begin();
  for (const one of strips) painter.strip(one);
  painter.end();
  return (x, y) => [...shown.data.subarray(4 * (y * 20 + x), 4 * (y * 20 + x) + 3)];
}

const ground = parseColour(LIGHT.background);
const colour = (slot: number) => [...parseColour(PALETTES[LIGHT.palette][slot]!)];

describe("the canvas painter", () => {
  it("fills a span, with a gap to the next one", () => {
    const at = painted(strip(shapes([2, 8, look(0, 3, FULL, FULL)])));
    expect(at(2, 5)).toEqual(colour(3));
    expect(at(6, 5)).toEqual(colour(3));
    expect(at(7, 5)).toEqual([...ground]);
    expect(at(1, 5)).toEqual([...ground]);
    expect(at(2, 10)).toEqual([...ground]);
  });

  it("draws a bucket as high as it is busy, and tints what is above", () => {
    const at = painted(strip(shapes([4, 5, look(0, 0, 128, FULL)])));
    expect(at(4, 9)).toEqual(colour(0));
    expect(at(4, 1)).not.toEqual(colour(0));
    expect(at(4, 1)).not.toEqual([...ground]);
  });

  it("shows at least a pixel of whatever is there", () => {
    const at = painted(strip(shapes([3.1, 3.101, look(0, 1, FULL, FULL)]), { bucketPixels: 1 }));
    expect(at(3, 5)).toEqual(colour(1));
    const low = painted(strip(shapes([3, 4, look(0, 1, 1, 0)])));
    expect(low(3, 9)).toEqual(colour(1));
  });

  it("cuts shapes to their tile and rows to those that are shown", () => {
    const at = painted(
      strip(shapes([-4000, 4000, look(0, 2, FULL, FULL)]), { clipLeft: 5, clipRight: 9 }),
      strip(shapes([0, 20, look(3, 2, FULL, FULL)]), { top: 12 }),
    );
    expect(at(4, 5)).toEqual([...ground]);
    expect(at(5, 5)).toEqual(colour(2));
    expect(at(9, 5)).toEqual([...ground]);
    expect(at(2, 20)).toEqual([...ground]);
  });

  it("squeezes depths below the full ones", () => {
    const at = painted(strip(shapes([0, 20, look(1, 2, FULL, FULL)]), { thinRows: 1 }));
    expect(at(3, 12)).toEqual(colour(2));
    expect(at(3, 14)).toEqual([...ground]);
  });
});

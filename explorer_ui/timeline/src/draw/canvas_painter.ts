/**
 * Draws on a 2D canvas: shapes are rasterised into a buffer of pixels and put on the canvas at once. On a machine
 * without a GPU a call per shape would cost many times as much.
 */

import { type InkTable, newCanvas, type Painter, sizeCanvas, type Strip } from "./painter.js";
import type { Rgb } from "./palette.js";
import { FULL } from "./shapes.js";

/** Spans wider than this have a gap to the next one. */
const GAP_FROM = 3;
const NARROW = 12;

export class CanvasPainter implements Painter {
  readonly kind = "canvas2d";
  readonly elements: readonly HTMLCanvasElement[];
  readonly pen: CanvasRenderingContext2D;
  private readonly canvas: HTMLCanvasElement;
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  private width = 0;
  private height = 0;
  private ratio = 1;
  private top = 0;
  private bottom = 0;
  private solid: Readonly<Record<string, Uint32Array>> = {};
  private tint: Readonly<Record<string, Uint32Array>> = {};
  private background = 0;

  constructor() {
    this.canvas = newCanvas("nt-canvas");
    this.elements = [this.canvas];
    const pen = this.canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    if (!pen) throw new Error("This browser gives no 2D canvas.");
    this.pen = pen;
  }

  resize(width: number, height: number, ratio: number): void {
    sizeCanvas(this.canvas, width, height, ratio);
    this.ratio = ratio;
    this.width = this.canvas.width;
    this.height = this.canvas.height;
    this.image = new ImageData(this.width, this.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  setInks(inks: InkTable): void {
    const packed = (colours: Readonly<Record<string, readonly Rgb[]>>): Record<string, Uint32Array> =>
      Object.fromEntries(Object.entries(colours).map(([ink, list]) => [ink, Uint32Array.from(list, packedColour)]));
    this.solid = packed(inks.solid);
    this.tint = packed(inks.tint);
    this.background = packedColour(inks.background);
  }

  begin(): void {
    this.pixels.fill(this.background);
    this.region(0, this.height / this.ratio);
  }

  region(top: number, bottom: number): void {
    this.top = Math.max(Math.round(top * this.ratio), 0);
    this.bottom = Math.min(Math.round(bottom * this.ratio), this.height);
  }

  fill(left: number, top: number, width: number, height: number, colour: Rgb): void {
    const from = Math.max(Math.round(left * this.ratio), 0);
    const to = Math.min(Math.max(Math.round((left + width) * this.ratio), from + 1), this.width);
    const first = Math.round(top * this.ratio);
    this.block(from, to, first, Math.max(Math.round((top + height) * this.ratio), first + 1), packedColour(colour));
  }

  strip(strip: Strip): void {
    const { edges, looks, count } = strip.shapes;
    const { ratio } = this;
    const [origin, scale] = [strip.originX * ratio, strip.bucketPixels * ratio];
    const [clipLeft, clipRight] = [Math.max(strip.clipLeft * ratio, 0), Math.min(strip.clipRight * ratio, this.width)];
    const [solid, tint] = [this.solid[strip.ink]!, this.tint[strip.ink]!];
    let lastDepth = -1;
    let [rowTop, rowBottom] = [0, 0];
    for (let at = 0; at < count; at += 1) {
      const left = edges[2 * at]! * scale + origin;
      const right = edges[2 * at + 1]! * scale + origin;
      if (right <= clipLeft || left >= clipRight) continue;
      const shape = looks[at]!;
      const depth = shape & 255;
      if (depth !== lastDepth) {
        lastDepth = depth;
        [rowTop, rowBottom] = this.rowOf(strip, depth);
      }
      if (rowBottom <= this.top || rowTop >= this.bottom) continue;
      const from = (Math.max(left, clipLeft) + 0.5) | 0;
      let to = (Math.min(right, clipRight) + 0.5) | 0;
      if (to <= from) to = from + 1;
      const [slot, solidPart, tintPart] = [(shape >>> 8) & 255, (shape >>> 16) & 255, shape >>> 24];
      if (solidPart === FULL) {
        if (to - from > GAP_FROM && right <= clipRight && strip.ink !== "counter") to -= 1;
        this.block(from, to, rowTop, rowBottom, solid[slot]!);
        continue;
      }
      const height = rowBottom - rowTop;
      const solidTop = rowBottom - Math.max(Math.round((height * solidPart) / FULL), solidPart > 0 ? 1 : 0);
      const tintTop = rowBottom - Math.round((height * tintPart) / FULL);
      if (tintTop < solidTop) this.block(from, to, tintTop, solidTop, tint[slot]!);
      this.block(from, to, solidTop, rowBottom, solid[slot]!);
    }
  }

  end(): void {
    if (!this.image) return;
    this.pen.setTransform(1, 0, 0, 1, 0, 0);
    this.pen.putImageData(this.image, 0, 0);
    this.pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
  }

  release(): void {
    // Nothing is held of shapes.
  }

  destroy(): void {
    this.canvas.remove();
    this.image = null;
    this.pixels = new Uint32Array(0);
  }

  private rowOf(strip: Strip, depth: number): [number, number] {
    let [top, height] = [0, 0];
    if (depth < strip.fullRows) {
      top = strip.top + depth * strip.rowHeight;
      height = strip.rowHeight - 1;
    } else if (depth < strip.fullRows + strip.thinRows) {
      top = strip.top + strip.fullRows * strip.rowHeight + (depth - strip.fullRows) * strip.thinHeight;
      height = strip.thinHeight;
    }
    return [Math.round(top * this.ratio), Math.round((top + height) * this.ratio)];
  }

  private block(from: number, to: number, top: number, bottom: number, colour: number): void {
    const { pixels, width } = this;
    const [first, last] = [Math.max(top, this.top), Math.min(bottom, this.bottom)];
    if (to - from > NARROW) {
      for (let place = first * width; place < last * width; place += width) {
        pixels.fill(colour, place + from, place + to);
      }
      return;
    }
    for (let row = first * width; row < last * width; row += width) {
      for (let place = row + from; place < row + to; place += 1) pixels[place] = colour;
    }
  }
}

/** As a pixel of an ImageData, on machines whose lowest byte comes first, which are all that run browsers. */
function packedColour([red, green, blue]: Rgb): number {
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Chooses the painter: WebGL2 on a GPU; without one, whichever draws the same frame sooner on this machine. */

import { CanvasPainter } from "./canvas_painter.js";
import { inkTable } from "./inks.js";
import type { Painter, Strip } from "./painter.js";
import { SLOTS } from "./palette.js";
import { FULL, look, type Shapes } from "./shapes.js";
import type { Theme } from "./theme.js";
import { WebGlPainter, WebGlUnavailableError } from "./webgl_painter.js";

export type PainterChoice = "auto" | "webgl2" | "canvas2d";

/** A WebGL2 painter; null where there is none. */
export function tryWebGl(onLost: () => void): WebGlPainter | null {
  try {
    return new WebGlPainter(onLost);
  } catch (error) {
    if (error instanceof WebGlUnavailableError) return null;
    throw error;
  }
}

/**
 * The painter to begin with. `isSettled` is false where the other one is worth a try: making a WebGL2 context takes
 * time that the first picture should not wait for.
 */
export function firstPainter(choice: PainterChoice, onLost: () => void): { painter: Painter; isSettled: boolean } {
  const painter = choice === "webgl2" ? tryWebGl(onLost) : null;
  return { painter: painter ?? new CanvasPainter(), isSettled: choice !== "auto" };
}

const SAMPLE_SHAPES = 400;
const SAMPLE_STRIPS = 6;
const SAMPLE_WIDTH = 400;
const ROUNDS = 2;

/**
 * Milliseconds that a painter takes for a small picture, its drawing waited for: the least of a few. Small, for where
 * instances are drawn by a program, a whole frame takes a second.
 */
export function sampleCost(painter: Painter, theme: Theme): number {
  painter.resize(SAMPLE_WIDTH, SAMPLE_STRIPS * 20, 1);
  painter.setInks(inkTable(theme));
  const shapes = sampleShapes();
  let least = Infinity;
  for (let round = 0; round <= ROUNDS; round += 1) {
    const from = performance.now();
    painter.begin();
    for (let strip = 0; strip < SAMPLE_STRIPS; strip += 1) painter.strip(sampleStrip(shapes, strip * 20));
    painter.end();
    painter.finish();
    if (round > 0) least = Math.min(least, performance.now() - from); // the first one uploads and compiles
  }
  painter.release(shapes);
  return least;
}

function sampleShapes(): Shapes {
  const edges = Float32Array.from({ length: 2 * SAMPLE_SHAPES }, (_, at) => (at >> 1) + (at & 1));
  const looks = Uint32Array.from({ length: SAMPLE_SHAPES }, (_, at) => look(0, at % SLOTS, (at * 37) % 255, FULL));
  return { count: SAMPLE_SHAPES, edges, looks };
}

function sampleStrip(shapes: Shapes, top: number): Strip {
  return {
    shapes,
    originX: 0,
    bucketPixels: 1,
    clipLeft: 0,
    clipRight: SAMPLE_WIDTH,
    top,
    fullRows: 1,
    rowHeight: 18,
    thinRows: 0,
    thinHeight: 3,
    ink: "plain",
  };
}

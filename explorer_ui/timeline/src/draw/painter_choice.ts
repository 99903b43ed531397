/** Chooses the painter: WebGL2 on a GPU; without one, whichever draws the same frame sooner on this machine. */

import { CanvasPainter } from "./canvas_painter.js";
import type { Painter } from "./painter.js";
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

/** The painter to begin with. `isSettled` is false where the other one is worth a try. */
export function firstPainter(choice: PainterChoice, onLost: () => void): { painter: Painter; isSettled: boolean } {
  if (choice === "canvas2d") return { painter: new CanvasPainter(), isSettled: true };
  const painter = tryWebGl(onLost);
  if (!painter) return { painter: new CanvasPainter(), isSettled: true };
  if (choice === "webgl2" || !painter.isSoftware) return { painter, isSettled: true };
  painter.destroy();
  return { painter: new CanvasPainter(), isSettled: false };
}

const ROUNDS = 3;

/** Milliseconds that a painter takes for a frame, its drawing waited for: the least of a few. */
export function frameCost(painter: Painter, draw: (painter: Painter) => void): number {
  let least = Infinity;
  for (let round = 0; round <= ROUNDS; round += 1) {
    const from = performance.now();
    draw(painter);
    painter.finish();
    if (round > 0) least = Math.min(least, performance.now() - from); // the first one uploads and compiles
  }
  return least;
}

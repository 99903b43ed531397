/** Chooses the painter: WebGL2 where there is a GPU for it; everywhere else our own rasteriser, which is quicker there. */

import { CanvasPainter } from "./canvas_painter.js";
import type { Painter } from "./painter.js";
import { WebGlPainter, WebGlUnavailableError } from "./webgl_painter.js";

export type PainterChoice = "auto" | "webgl2" | "canvas2d";

/** A WebGL2 painter; null where there is none, or where there is none that a GPU draws and one is asked for. */
export function tryWebGl(onLost: () => void, needsGpu: boolean): Painter | null {
  try {
    return new WebGlPainter(onLost, needsGpu);
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
  const painter = choice === "webgl2" ? tryWebGl(onLost, false) : null;
  return { painter: painter ?? new CanvasPainter(), isSettled: choice !== "auto" };
}

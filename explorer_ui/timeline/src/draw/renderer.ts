/** Owns the painter: draws frames when asked, measures them, and changes to WebGL2 by itself where a GPU draws it. */

import type { Chunk } from "../data/chunk.js";
import { CanvasPainter } from "./canvas_painter.js";
import { type DrawnRow, FrameDrawer, type FrameInput } from "./frame.js";
import { inkTable } from "./inks.js";
import type { Painter } from "./painter.js";
import { firstPainter, type PainterChoice, tryWebGl } from "./painter_choice.js";
import type { Theme } from "./theme.js";

const KEPT_FRAMES = 600;

export class Renderer {
  /** Milliseconds of script of the last frames. */
  readonly frameMs: number[] = [];
  frames = 0;
  rows: readonly DrawnRow[] = [];
  private readonly drawer = new FrameDrawer();
  private painter: Painter;
  private isSettled: boolean;
  private requested = 0;
  private size = { width: 0, height: 0, ratio: 1 };
  private theme: Theme | null = null;
  private dimmed: ReadonlySet<number> = new Set();

  /**
   * @param stage Where the canvases go.
   * @param onFrame Called in each frame; gives what to draw, null for nothing.
   * @param onDrawn Called after each frame.
   */
  constructor(
    private readonly stage: HTMLElement,
    choice: PainterChoice,
    private readonly onFrame: () => FrameInput | null,
    private readonly onDrawn: () => void,
  ) {
    const first = firstPainter(choice, () => this.use(new CanvasPainter()));
    this.painter = first.painter;
    this.isSettled = first.isSettled;
    stage.prepend(...this.painter.elements);
  }

  get kind(): "webgl2" | "canvas2d" {
    return this.painter.kind;
  }

  /** Draw with the next frame of the browser. */
  invalidate(): void {
    if (this.requested === 0) this.requested = requestAnimationFrame(() => this.frame());
  }

  resize(width: number, height: number, ratio: number): void {
    this.size = { width, height, ratio };
    this.painter.resize(width, height, ratio);
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.painter.setInks(inkTable(theme, this.dimmed));
  }

  /** Draw spans of some colours faintly. */
  dim(slots: ReadonlySet<number>): void {
    this.dimmed = slots;
    if (this.theme) this.setTheme(this.theme);
    this.invalidate();
  }

  release(chunk: Chunk): void {
    this.painter.release(chunk.shapes);
  }

  /** Change to WebGL2 where a GPU draws it. Only once. */
  settle(): void {
    if (this.isSettled || !this.theme) return;
    this.isSettled = true;
    const other = tryWebGl(() => this.use(new CanvasPainter()), true);
    if (other) this.use(other);
  }

  destroy(): void {
    cancelAnimationFrame(this.requested);
    this.painter.destroy();
  }

  private use(painter: Painter): void {
    this.painter.destroy();
    this.painter = painter;
    this.stage.prepend(...painter.elements);
    painter.resize(this.size.width, this.size.height, this.size.ratio);
    if (this.theme) painter.setInks(inkTable(this.theme, this.dimmed));
    this.invalidate();
  }

  private frame(): void {
    this.requested = 0;
    const from = performance.now();
    const input = this.onFrame();
    if (input) this.rows = this.drawer.draw(this.painter, input);
    this.frames += 1;
    this.onDrawn();
    this.frameMs.push(performance.now() - from);
    if (this.frameMs.length > KEPT_FRAMES) this.frameMs.shift();
  }
}

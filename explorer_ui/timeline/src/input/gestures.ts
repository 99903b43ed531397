/** Mouse, wheel, trackpad and touch on the plot. */

import { lengthOf, moved, type TimeRange, zoomed } from "../view/time_range.js";
import type { TimeScale } from "../view/time_scale.js";

/** What gestures act on. */
export interface GestureTarget {
  scale(): TimeScale;
  setRange(range: TimeRange): void;
  scrollBy(pixels: number): void;
  /** The pointer rests on a point of the plot; null when it leaves. */
  onHover(x: number | null, y: number): void;
  onClick(x: number, y: number, event: PointerEvent): void;
  onDoubleClick(x: number, y: number): void;
  /** A range is being chosen, or has been; null when the gesture is given up. */
  onRange(range: TimeRange | null, isDone: boolean): void;
  /** A box to zoom into is being drawn, or has been. */
  onBox(box: { left: number; right: number; top: number; bottom: number } | null, isDone: boolean): void;
}

type Drag = "pan" | "range" | "box" | "none";

const WHEEL_ZOOM = 0.0022;
const CLICK_PIXELS = 4;

/**
 * Listens on an element. Dragging moves the view; with Shift it chooses a range, with Alt a box to zoom into, and
 * dragging in the ruler chooses a range too. Two fingers pinch.
 */
export class Gestures {
  private readonly abort = new AbortController();
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private drag: Drag = "none";
  private startX = 0;
  private startY = 0;
  private startNs = 0;
  private isMoved = false;

  /** @param rulerHeight Pixels at the top in which dragging chooses a range. */
  constructor(
    private readonly stage: HTMLElement,
    private readonly target: GestureTarget,
    private readonly rulerHeight: number,
  ) {
    const on = <K extends keyof HTMLElementEventMap>(name: K, listener: (event: HTMLElementEventMap[K]) => void): void =>
      stage.addEventListener(name, listener, { signal: this.abort.signal, passive: false });
    on("wheel", (event) => this.wheel(event));
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", (event) => this.cancel(event));
    on("pointerleave", () => target.onHover(null, 0));
    on("dblclick", (event) => target.onDoubleClick(...this.place(event)));
    on("contextmenu", (event) => {
      if (this.isMoved) event.preventDefault();
    });
  }

  /** Give up what is being dragged. */
  reset(): void {
    if (this.drag === "range") this.target.onRange(null, true);
    if (this.drag === "box") this.target.onBox(null, true);
    this.drag = "none";
    this.pointers.clear();
  }

  destroy(): void {
    this.abort.abort();
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const scale = this.target.scale();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    const [x, y] = this.place(event);
    if (event.ctrlKey || event.metaKey || y < this.rulerHeight) {
      // Pinching on a trackpad comes as a wheel with Ctrl and small steps.
      const strength = Math.abs(event.deltaY) < 50 && event.deltaMode === 0 ? WHEEL_ZOOM * 4 : WHEEL_ZOOM;
      const factor = Math.exp(Math.max(Math.min(event.deltaY * unit * strength, 1.2), -1.2));
      this.target.setRange(zoomed(scale.range, factor, scale.toNs(x)));
      return;
    }
    const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (sideways !== 0) this.target.setRange(moved(scale.range, sideways * unit * scale.nsPerPixel));
    if (!event.shiftKey && event.deltaY !== 0) this.target.scrollBy(event.deltaY * unit);
  }

  private down(event: PointerEvent): void {
    if (event.button > 1) return;
    const [x, y] = this.place(event);
    this.pointers.set(event.pointerId, { x, y });
    if (this.pointers.size > 1) {
      this.drag = "none";
      return;
    }
    this.stage.setPointerCapture(event.pointerId);
    this.drag = event.altKey ? "box" : event.shiftKey || y < this.rulerHeight ? "range" : "pan";
    [this.startX, this.startY, this.isMoved] = [x, y, false];
    this.startNs = this.target.scale().toNs(x);
  }

  private move(event: PointerEvent): void {
    const [x, y] = this.place(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.target.onHover(x, y);
      return;
    }
    if (this.pointers.size === 2) this.pinch(event.pointerId, x, y);
    this.pointers.set(event.pointerId, { x, y });
    if (this.pointers.size > 1) return;
    if (!this.isMoved && Math.hypot(x - this.startX, y - this.startY) < CLICK_PIXELS) return;
    this.isMoved = true;
    if (this.drag === "pan") this.pan(x, y, before);
    else if (this.drag === "range") this.target.onRange(this.rangeTo(x), false);
    else if (this.drag === "box") this.target.onBox(this.boxTo(x, y), false);
  }

  private pan(x: number, y: number, before: { x: number; y: number }): void {
    this.stage.style.cursor = "grabbing";
    this.target.onHover(null, 0);
    const scale = this.target.scale();
    if (x !== before.x) this.target.setRange(moved(scale.range, (before.x - x) * scale.nsPerPixel));
    if (y !== before.y) this.target.scrollBy(before.y - y);
  }

  private up(event: PointerEvent): void {
    if (!this.pointers.delete(event.pointerId)) return;
    const [x, y] = this.place(event);
    this.stage.style.cursor = "";
    const drag = this.drag;
    this.drag = "none";
    if (drag === "none") return;
    if (!this.isMoved) this.target.onClick(x, y, event);
    else if (drag === "range") this.target.onRange(this.rangeTo(x), true);
    else if (drag === "box") this.target.onBox(this.boxTo(x, y), true);
  }

  private cancel(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
    this.reset();
  }

  private pinch(id: number, x: number, y: number): void {
    const other = [...this.pointers].find(([one]) => one !== id)?.[1];
    const before = this.pointers.get(id);
    if (!other || !before) return;
    const scale = this.target.scale();
    const apart = Math.max(Math.hypot(before.x - other.x, before.y - other.y), 1);
    const factor = apart / Math.max(Math.hypot(x - other.x, y - other.y), 1);
    const middleNs = scale.toNs((before.x + other.x) / 2);
    const next = zoomed(scale.range, factor, middleNs);
    // What was between the fingers stays there: their middle moves by pixels of the new scale.
    this.target.setRange(moved(next, ((before.x - x) / 2) * (lengthOf(next) / scale.width)));
    this.target.scrollBy((before.y - y) / 2);
  }

  private rangeTo(x: number): TimeRange {
    const timeNs = this.target.scale().toNs(x);
    return { startNs: Math.min(this.startNs, timeNs), endNs: Math.max(this.startNs, timeNs) };
  }

  private boxTo(x: number, y: number): { left: number; right: number; top: number; bottom: number } {
    return {
      left: Math.min(x, this.startX),
      right: Math.max(x, this.startX),
      top: Math.min(y, this.startY),
      bottom: Math.max(y, this.startY),
    };
  }

  private place(event: MouseEvent): [number, number] {
    const box = this.stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
}

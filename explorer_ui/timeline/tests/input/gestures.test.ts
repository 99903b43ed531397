import { beforeEach, expect, it, vi } from "vitest";
import { Gestures, type GestureTarget } from "../../src/input/gestures.js";
import type { TimeRange } from "../../src/view/time_range.js";
import { TimeScale } from "../../src/view/time_scale.js";

/** A stage that keeps its listeners, so that events can be given to them. */
class Stage {
  readonly style = { cursor: "" };
  private readonly listeners = new Map<string, (event: unknown) => void>();

  addEventListener(name: string, listener: (event: unknown) => void): void {
    this.listeners.set(name, listener);
  }

  setPointerCapture(): void {
    // Nothing to capture here.
  }

  getBoundingClientRect(): { left: number; top: number } {
    return { left: 0, top: 0 };
  }

  send(name: string, clientX: number, clientY: number, more: object = {}): void {
    this.listeners.get(name)?.({ clientX, clientY, pointerId: 1, button: 0, preventDefault: () => undefined, ...more });
  }
}

let range: TimeRange;
let stage: Stage;
const onClick = vi.fn();
const onRange = vi.fn();
const onBox = vi.fn();

beforeEach(() => {
  range = { startNs: 0, endNs: 1000 };
  stage = new Stage();
  for (const listener of [onClick, onRange, onBox]) listener.mockClear();
  const target: GestureTarget = {
    scale: () => new TimeScale(range, 100),
    setRange: (next) => (range = next),
    scrollBy: vi.fn(),
    onHover: vi.fn(),
    onClick,
    onDoubleClick: vi.fn(),
    onRange,
    onBox,
  };
  new Gestures(stage as unknown as HTMLElement, target, 20);
});

it("zooms by two fingers around the time between them", () => {
  stage.send("pointerdown", 40, 50, { pointerId: 1 });
  stage.send("pointerdown", 60, 50, { pointerId: 2 });
  stage.send("pointermove", 70, 50, { pointerId: 2 });
  stage.send("pointermove", 30, 50, { pointerId: 1 });
  expect(range.endNs - range.startNs).toBeCloseTo(500, 0);
  expect((range.startNs + range.endNs) / 2).toBeCloseTo(500, 0);
  stage.send("pointerup", 30, 50, { pointerId: 1 });
  stage.send("pointerup", 70, 50, { pointerId: 2 });
  expect(onClick).not.toHaveBeenCalled();
});

it("zooms at the pointer by a wheel with Ctrl, which is what a trackpad's pinch sends", () => {
  stage.send("wheel", 50, 50, { deltaY: -10, deltaX: 0, deltaMode: 0, ctrlKey: true });
  expect(range.endNs - range.startNs).toBeLessThan(1000);
  expect((range.startNs + range.endNs) / 2).toBeCloseTo(500, 0);
});

it("moves by dragging, and clicks where nothing was dragged", () => {
  stage.send("pointerdown", 50, 50);
  stage.send("pointermove", 40, 50);
  stage.send("pointerup", 40, 50);
  expect(range).toEqual({ startNs: 100, endNs: 1100 });
  stage.send("pointerdown", 40, 50);
  stage.send("pointerup", 41, 50);
  expect(onClick).toHaveBeenCalledOnce();
});

it("chooses a range with Shift or in the ruler, and a box with Alt", () => {
  stage.send("pointerdown", 20, 50, { shiftKey: true });
  stage.send("pointermove", 60, 50, { shiftKey: true });
  stage.send("pointerup", 60, 50, { shiftKey: true });
  expect(onRange).toHaveBeenLastCalledWith({ startNs: 200, endNs: 600 }, true);
  stage.send("pointerdown", 60, 5);
  stage.send("pointermove", 30, 5);
  stage.send("pointerup", 30, 5);
  expect(onRange).toHaveBeenLastCalledWith({ startNs: 300, endNs: 600 }, true);
  stage.send("pointerdown", 10, 40, { altKey: true });
  stage.send("pointermove", 30, 70, { altKey: true });
  stage.send("pointerup", 30, 70, { altKey: true });
  expect(onBox).toHaveBeenLastCalledWith({ left: 10, right: 30, top: 40, bottom: 70 }, true);
});

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { First } from "../../src/workspace/first.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("all else is asked for when what is seen first is drawn", () => {
  let isDrawn = false;
  const onOver = vi.fn();
  const first = new First(() => isDrawn, onOver);
  vi.advanceTimersByTime(500);
  expect(first.isOver).toBe(false);
  isDrawn = true;
  vi.advanceTimersByTime(100);
  expect(first.isOver).toBe(true);
  vi.advanceTimersByTime(5000);
  expect(onOver).toHaveBeenCalledTimes(1);
});

test("it waits no longer than a moment", () => {
  const onOver = vi.fn();
  const first = new First(() => false, onOver);
  vi.advanceTimersByTime(1400);
  expect(first.isOver).toBe(false);
  vi.advanceTimersByTime(200);
  expect(first.isOver).toBe(true);
});

test("a workspace that is left asks for nothing", () => {
  const onOver = vi.fn();
  new First(() => false, onOver).stop();
  vi.advanceTimersByTime(5000);
  expect(onOver).not.toHaveBeenCalled();
});

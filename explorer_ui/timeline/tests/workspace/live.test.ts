import { afterEach, expect, it, vi } from "vitest";
import { Live, type News } from "../../src/workspace/live.js";

const news = (steps: number, complete: boolean): News => ({ complete, end_ns: 100 * steps, steps, newest: null });

function answering(answers: readonly News[]): void {
  let at = 0;
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json(answers[Math.min(at++, answers.length - 1)])));
}

async function heard(answers: readonly News[]): Promise<number[]> {
  vi.useFakeTimers();
  answering(answers);
  const steps: number[] = [];
  const live = new Live("", (one) => steps.push(one.steps));
  live.follow("p");
  for (let turn = 0; turn < 6; turn += 1) await vi.advanceTimersByTimeAsync(2000);
  live.stop();
  return steps;
}

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("tells what is new until the capture is complete", async () => {
  expect(await heard([news(1, false), news(1, false), news(3, false), news(4, true), news(5, true)])).toEqual([1, 3, 4]);
});

it("has nothing to tell of a profile that is complete", async () => {
  expect(await heard([news(7, true)])).toEqual([]);
});

/** What the user asked for and then left must not come after all, whenever its answer arrives. */

import { describe, expect, it, vi } from "vitest";
import { Core } from "../../src/core.js";
import type { DataSource } from "../../src/data/source.js";
import { LIGHT } from "../../src/draw/theme.js";
import { Dependencies } from "../../src/features/dependencies.js";
import { Lit } from "../../src/features/lit.js";
import { EMPTY_VIEW, type SpanRef } from "../../src/view/view_state.js";
import { track } from "../tracks.js";

const tracks = [track(0), track(1)];
const span = (row: number): SpanRef => ({ track: tracks[0]!.id, row, depth: 0, startNs: 10 * row, durationNs: 5, name: `span ${row}` });
const chain = {
  spans: [0, 1].map((place) => ({ track: place, depth: 0, start_ns: 0, duration_ns: 5, name: "" })),
  edges: [{ from: 0, to: 1, kind: "wait" }],
};
const details = { belongs: [{ by: "layer", value: "/model", name: "model" }] };
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

/** A profile whose source answers when it is told to, also to what was given up. */
function opened(): { core: Core; answers: ((json: object) => void)[]; onError: (error: unknown) => void } {
  const answers: ((json: object) => void)[] = [];
  const source: DataSource = {
    request: () =>
      new Promise((resolve) => {
        answers.push((json) => resolve(new TextEncoder().encode(JSON.stringify(json)).buffer));
      }),
  };
  const onError = vi.fn<(error: unknown) => void>();
  const core = new Core(source, EMPTY_VIEW, LIGHT, undefined, onError);
  core.open({ id: "it", name: "it", isComplete: true, originNs: "0", startNs: 0, endNs: 1000, tracks });
  core.resize(1000, 500);
  core.update({ span: span(1) });
  return { core, answers, onError };
}

describe("the chain of dependencies", () => {
  const made = (): ReturnType<typeof opened> & { say: (text: string) => void; dependencies: Dependencies } => {
    const all = opened();
    const say = vi.fn<(text: string) => void>();
    return { ...all, say, dependencies: new Dependencies(all.core, say, all.onError) };
  };

  it("is shown when its answer is there, and no more after another press", async () => {
    const { core, answers, say, dependencies } = made();
    dependencies.toggle();
    answers[0]!(chain);
    await settled();
    expect(core.overlays.dependencies).toHaveLength(1);
    expect(say).toHaveBeenCalledWith("1 dependency is shown.");
    dependencies.toggle();
    expect(core.overlays.dependencies).toEqual([]);
    dependencies.toggle();
    expect(answers).toHaveLength(2);
  });

  it("is given up by a second press, and by another span", async () => {
    const { core, answers, say, dependencies } = made();
    dependencies.toggle();
    dependencies.toggle();
    dependencies.toggle();
    core.update({ span: span(2) });
    for (const answer of answers) answer(chain);
    await settled();
    expect(answers).toHaveLength(2);
    expect(core.overlays.dependencies).toEqual([]);
    expect(say).not.toHaveBeenCalled();
  });
});

describe("lighting up", () => {
  const made = (): ReturnType<typeof opened> & { lit: Lit } => {
    const all = opened();
    return { ...all, lit: new Lit(all.core, () => undefined, all.onError) };
  };

  it("lights up what the span belongs to when that is known", async () => {
    const { core, answers, lit } = made();
    const asked = lit.toggleChosen();
    answers[0]!(details);
    await asked;
    expect(core.view.highlight).toEqual({ by: "layer", value: "/model", label: "model" });
    expect(lit.isSharp).toBe(false);
    await lit.toggleChosen();
    expect(core.view.highlight).toBeNull();
    expect(lit.isSharp).toBe(true);
  });

  it.each([
    ["a second press", (_: Core, lit: Lit) => lit.toggleChosen()],
    ["another span", (core: Core) => core.update({ span: span(2) })],
    ["clearing", (core: Core) => core.update({ span: null, highlight: null })],
  ])("is given up by %s", async (_, leave) => {
    const { core, answers, lit } = made();
    const asked = lit.toggleChosen();
    await leave(core, lit);
    answers[0]!(details);
    await asked;
    expect(core.view.highlight).toBeNull();
  });
});

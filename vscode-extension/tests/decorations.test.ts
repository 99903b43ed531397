import { beforeEach, describe, expect, it, vi } from "vitest";
import type * as vscode from "vscode";
import { LineDecorations } from "../src/editor/decorations";
import type { DocumentCosts } from "../src/source/document_costs";
import { placeCosts, type PlacedCosts } from "../src/source/file_costs";
import type { LineWork, Work } from "../src/server/answers";
import { configuration, editors, EventEmitter, Range } from "./vscode_stub";

interface Drawn {
  readonly isText: boolean;
}

/** An editor of a file with so many lines, of which some are in sight; `texts` are the ends of lines that it draws. */
class Editor {
  readonly document = {
    languageId: "python",
    version: 1,
    lineAt: (line: number) => ({ range: new Range(line, 0, line, 10) }),
  };
  visibleRanges: Range[] = [];
  texts: string[] = [];
  /** How many lines have heat, by step. */
  readonly heat = new Map<Drawn, number>();

  get heated(): number {
    return [...this.heat.values()].reduce((sum, count) => sum + count, 0);
  }

  setDecorations(type: Drawn, options: readonly vscode.DecorationOptions[]): void {
    if (!type.isText) this.heat.set(type, options.length);
    else this.texts = options.map(({ renderOptions }) => renderOptions?.after?.contentText ?? "");
  }
}

/** Costs that are known when the test says so. */
class Costs {
  readonly changed = new EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  readonly asked: ((costs: PlacedCosts | undefined) => void)[] = [];
  of(): Promise<PlacedCosts | undefined> {
    return new Promise((resolve) => this.asked.push(resolve));
  }
}

const LINES = 300;
const work = (ns: number): Work => ({
  device_ns: ns, share: 1 / LINES, backward_ns: 0, calls: 1, instructions: 1, hbm_bytes: 0, flops: 0, engine_ns: {},
});
const lineWork = (line: number, ns: number): LineWork => ({ ...work(ns), line, own_code: work(ns), total: work(ns) });

/** Each line takes so many ns. */
function costsOf(ns: number): PlacedCosts {
  const lines = Array.from({ length: LINES }, (_, index) => lineWork(index + 1, ns));
  return placeCosts({ path: "/p.py", device_ns: ns * LINES, lines, functions: [] }, undefined, "\n".repeat(LINES - 1));
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

describe("LineDecorations", () => {
  let editor: Editor;
  let costs: Costs;

  beforeEach(() => {
    vi.useFakeTimers();
    configuration.values.set("neuron.decorations.contents", ["time"]);
    editor = new Editor();
    editor.visibleRanges = [new Range(100, 0, 120, 0)];
    costs = new Costs();
    editors.visible = [editor];
  });

  function start(): LineDecorations {
    return new LineDecorations(costs as unknown as DocumentCosts);
  }

  it("draws the texts in sight at once, and heat with the texts around them a moment later", async () => {
    start();
    costs.asked[0]?.(costsOf(5));
    await settle();
    expect([editor.texts.length, editor.heated]).toEqual([21, 0]);
    vi.runAllTimers();
    expect(editor.heated).toBe(LINES);
    expect(editor.texts.length).toBeGreaterThan(100);
    expect(editor.texts.length).toBeLessThan(LINES);
  });

  it("draws an editor that was open before the costs were known, although it is not laid out yet", async () => {
    editor.visibleRanges = [];
    start();
    costs.asked[0]?.(undefined);
    await settle();
    expect(editor.texts).toEqual([]);
    costs.changed.fire();
    costs.asked[1]?.(costsOf(5));
    await settle();
    expect(editor.texts.length).toBeGreaterThan(20);
  });

  it("draws nothing that was overtaken", async () => {
    start();
    costs.changed.fire();
    costs.asked[1]?.(costsOf(7));
    costs.asked[0]?.(costsOf(5));
    await settle();
    expect(new Set(editor.texts)).toEqual(new Set(["stale? 7 ns"]));
    costs.changed.fire();
    costs.changed.fire();
    costs.asked[3]?.(costsOf(8));
    costs.asked[2]?.(undefined);
    await settle();
    expect(new Set(editor.texts)).toEqual(new Set(["stale? 8 ns"]));
  });

  it("keeps the heat of the whole file while it is edited", async () => {
    start();
    costs.asked[0]?.(costsOf(5));
    await settle();
    vi.runAllTimers();
    costs.changed.fire();
    costs.asked[1]?.(costsOf(6));
    await settle();
    expect(editor.heated).toBe(LINES);
  });

  it("draws what comes into sight", async () => {
    start();
    costs.asked[0]?.(costsOf(5));
    await settle();
    editor.visibleRanges = [new Range(250, 0, 260, 0)];
    editors.scrolled.fire({ textEditor: editor });
    expect(editor.texts).toHaveLength(11);
  });
});

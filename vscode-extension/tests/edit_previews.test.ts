import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type * as vscode from "vscode";
import { EditPreviews } from "../src/editor/edit_previews";
import type { Preview } from "../src/server/answers";
import type { Connection } from "../src/server/connection";
import type { DocumentCosts } from "../src/source/document_costs";
import { configuration, diagnostics, documents, EventEmitter, Range, workspace } from "./vscode_stub";

const PROBLEM = { file: "/w/k.py", line: 2, message: "a tile needs 256 partitions, but there are 128", kind: "rule" } as const;
const NOTHING: Preview = { kernels: [], problems: [], before: null, after: null };
const PREDICTED: Preview = {
  ...NOTHING,
  kernels: ["k"],
  before: { path: "/w/k.py", device_ns: 2, lines: [], functions: [] },
  after: { path: "/w/k.py", device_ns: 1, lines: [], functions: [] },
};

function edited(version: number): vscode.TextDocument {
  const uri = { scheme: "file", path: "/w/k.py", toString: () => "file:///w/k.py" };
  const lineAt = (line: number) => ({ range: new Range(line, 0, line, 9), firstNonWhitespaceCharacterIndex: 4 });
  return { uri, version, languageId: "python", lineCount: 3, getText: () => `text ${version}`, lineAt } as unknown as vscode.TextDocument;
}

describe("EditPreviews", () => {
  let document: vscode.TextDocument;
  let answers: Preview[];
  let previews: EditPreviews;
  const asked: string[] = [];
  const told: Preview[] = [];
  const registry = { current: { path: "/w/a.nprof" } as object | undefined, base: undefined, range: undefined, idOf: () => "1" };
  const changed = new EventEmitter<void>();
  let freshness = "moved";

  beforeEach(() => {
    vi.useFakeTimers();
    configuration.values.clear();
    workspace.workspaceFolders = [{ uri: { fsPath: "/w", path: "/w", scheme: "file" } }];
    [asked.length, told.length, freshness] = [0, 0, "moved"];
    diagnostics.clear();
    document = edited(1);
    answers = [PREDICTED];
    const client = { preview: (_id: string, _path: string, text: string) => (asked.push(text), Promise.resolve(answers.shift())) };
    const connection = { isRemote: false, ask: (question: (one: object) => unknown) => question(client) };
    const costs = {
      data: { registry, onDidChange: changed.event },
      of: () => Promise.resolve({ path: "/w/k.py", freshness }),
      predict: (_document: unknown, _version: number, preview: Preview) => told.push(preview),
    };
    previews = new EditPreviews(connection as unknown as Connection, costs as unknown as DocumentCosts);
  });

  afterEach(() => previews.dispose());

  async function edit(): Promise<void> {
    documents.changed.fire({ document, contentChanges: [{}] });
    await vi.runAllTimersAsync();
  }

  it("asks once when typing rests, and lets the lines show the answer", async () => {
    documents.changed.fire({ document, contentChanges: [{}] });
    await edit();
    expect(asked).toEqual(["text 1"]);
    expect(told).toEqual([PREDICTED]);
  });

  it("puts rules that are broken at their lines, and takes them away once they hold", async () => {
    answers = [{ ...NOTHING, problems: [PROBLEM] }, PREDICTED];
    await edit();
    const [found] = diagnostics.get("file:///w/k.py") ?? [];
    expect([found?.message, found?.range.start.line, found?.code]).toEqual([PROBLEM.message, 1, "rule"]);
    await edit();
    expect(diagnostics.get("file:///w/k.py")).toEqual([]);
  });

  it("leaves errors of syntax to others", async () => {
    answers = [{ ...NOTHING, kernels: ["k"], problems: [{ ...PROBLEM, kind: "syntax" }] }];
    await edit();
    expect(diagnostics.get("file:///w/k.py")).toEqual([]);
  });

  it("asks nothing about a file without kernels, until another profile is chosen", async () => {
    answers = [NOTHING, PREDICTED];
    await edit();
    await edit();
    expect(asked).toHaveLength(1);
    changed.fire();
    await edit();
    expect(asked).toHaveLength(2);
  });

  it("asks nothing where it may not run the code, or nothing was changed", async () => {
    configuration.values.set("neuron.whatIf.onEdit", false);
    await edit();
    configuration.values.clear();
    workspace.isTrusted = false;
    await edit();
    workspace.isTrusted = true;
    freshness = "same";
    await edit();
    expect(asked).toEqual([]);
  });

  it("drops answers about a text that was edited again", async () => {
    answers = [{ ...PREDICTED, superseded: true }];
    await edit();
    expect(told).toEqual([]);
  });
});

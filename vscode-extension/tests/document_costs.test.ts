import { beforeEach, describe, expect, it, vi } from "vitest";
import type * as vscode from "vscode";
import type { ProfileData } from "../src/profiles/data";
import { DocumentCosts } from "../src/source/document_costs";
import { configuration, EventEmitter } from "./vscode_stub";

const TEXT = "a()\nb()\n";

/** Answers about a profile; the list of its files waits until the test gives it. */
class Data {
  readonly changed = new EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  readonly registry = { current: { path: "/p.nprof" } };
  readonly waiting: ((files: readonly string[]) => void)[] = [];
  device_ns = 1;

  async sources(): Promise<unknown> {
    const files = await new Promise<readonly string[]>((resolve) => this.waiting.push(resolve));
    return { files: files.map((path) => ({ path, sha256: null })), instructions: 1 };
  }

  lines(path: string): Promise<unknown> {
    return Promise.resolve({ path, device_ns: this.device_ns, lines: [], functions: [] });
  }
}

function document(path: string): vscode.TextDocument {
  const uri = { scheme: "file", path, fsPath: path };
  return { uri, languageId: "python", lineCount: 3, version: 1, getText: () => TEXT } as unknown as vscode.TextDocument;
}

describe("DocumentCosts", () => {
  let data: Data;
  let costs: DocumentCosts;

  beforeEach(() => {
    configuration.values.clear();
    data = new Data();
    costs = new DocumentCosts(data as unknown as ProfileData);
  });

  it("asks once for each version of a document", async () => {
    const file = document("/p/f.py");
    const [one, other] = [costs.of(file), costs.of(file)];
    data.waiting[0]?.(["/p/f.py"]);
    expect(await one).toBe(await other);
    expect(data.waiting).toHaveLength(1);
  });

  it("answers for the profile that is chosen by then", async () => {
    const asked = costs.of(document("/p/f.py"));
    data.device_ns = 2;
    data.changed.fire();
    data.waiting[0]?.([]);
    await vi.waitUntil(() => data.waiting.length > 1);
    data.waiting[1]?.(["/p/f.py"]);
    expect((await asked)?.deviceNs).toBe(2);
  });

  it("follows the rules for paths as soon as they are set", async () => {
    const file = document("/here/g.py");
    const before = costs.of(file);
    data.waiting[0]?.(["/there/f.py"]);
    expect(await before).toBeUndefined();
    let told = 0;
    costs.onDidChange(() => (told += 1));
    configuration.set("neuron.pathMappings", { "/there/f.py": "/here/g.py" });
    expect(told).toBe(1);
    const after = costs.of(file);
    data.waiting[1]?.(["/there/f.py"]);
    expect((await after)?.path).toBe("/there/f.py");
  });
});

/** What-if while typing: edited kernels are simulated in the background; rules that they break stand at their lines. */

import * as vscode from "vscode";
import { logError } from "../log";
import type { Preview, Problem } from "../server/answers";
import type { Connection } from "../server/connection";
import { settings } from "../settings";
import type { DocumentCosts } from "../source/document_costs";
import { isInWorkspace } from "../source/locate";
import { shortened } from "../text/markdown";

const PAUSE_MS = 300;
const SOURCE = "neuron what-if";
const LONGEST_MESSAGE = 1000;

export class EditPreviews implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection("neuron-what-if");
  private readonly pending = new Map<vscode.TextDocument, NodeJS.Timeout>();
  /** Documents that take part in no kernel of the profile. */
  private without = new WeakSet<vscode.TextDocument>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly connection: Connection,
    private readonly costs: DocumentCosts,
  ) {
    this.subscriptions = [
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0 && this.isWanted(document)) this.soon(document);
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        clearTimeout(this.pending.get(document));
        this.pending.delete(document);
        this.collection.delete(document.uri);
      }),
      costs.data.onDidChange(() => {
        this.without = new WeakSet();
        this.collection.clear();
      }),
    ];
  }

  dispose(): void {
    for (const timer of this.pending.values()) clearTimeout(timer);
    for (const part of [...this.subscriptions, this.collection]) part.dispose();
  }

  private isWanted(document: vscode.TextDocument): boolean {
    const { current, base, range } = this.costs.data.registry;
    const isPlain = current !== undefined && !base && !range && !this.without.has(document);
    const mayRun = settings.simulatesEdits() && vscode.workspace.isTrusted && !this.connection.isRemote;
    return isPlain && mayRun && document.languageId === "python" && isInWorkspace(document.uri);
  }

  private soon(document: vscode.TextDocument): void {
    clearTimeout(this.pending.get(document));
    const begin = (): void => {
      this.pending.delete(document);
      this.simulate(document).catch(logError);
    };
    this.pending.set(document, setTimeout(begin, PAUSE_MS));
  }

  private async simulate(document: vscode.TextDocument): Promise<void> {
    const { version } = document;
    const { registry } = this.costs.data;
    const { current } = registry;
    const costs = await this.costs.of(document);
    if (!current || !costs || costs.freshness === "unknown") return;
    if (costs.freshness === "same") {
      this.collection.delete(document.uri);
      return;
    }
    const text = document.getText();
    const id = await registry.idOf(current);
    const preview = await this.connection.ask((client) => client.preview(id, costs.path, text));
    // Another text, or another profile, is asked about by itself.
    if (document.version !== version || registry.current !== current || preview.superseded) return;
    this.show(document, costs.path, preview);
  }

  private show(document: vscode.TextDocument, path: string, preview: Preview): void {
    if (preview.kernels.length === 0 && preview.problems.length === 0) this.without.add(document);
    const here = preview.problems.filter(({ file, line, kind }) => file === path && line > 0 && kind !== "syntax");
    this.collection.set(document.uri, here.flatMap((problem) => diagnostics(document, problem)));
    if (preview.after) this.costs.predict(document, document.version, preview);
  }
}

function diagnostics(document: vscode.TextDocument, { line, message, kind }: Problem): vscode.Diagnostic[] {
  if (line > document.lineCount) return [];
  const { range, firstNonWhitespaceCharacterIndex } = document.lineAt(line - 1);
  const place = range.with(new vscode.Position(line - 1, firstNonWhitespaceCharacterIndex));
  const found = new vscode.Diagnostic(place, shortened(message, LONGEST_MESSAGE), vscode.DiagnosticSeverity.Error);
  found.source = SOURCE;
  found.code = kind;
  return [found];
}

/** Time, share and MFU above functions and kernels. */

import * as vscode from "vscode";
import { logError } from "../log";
import { settings } from "../settings";
import type { DocumentCosts } from "../source/document_costs";
import { functionText } from "../text/line_text";

export class FunctionLenses implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly costs: DocumentCosts) {
    this.subscriptions = [
      costs.onDidChange(() => this.changed.fire()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("neuron")) this.changed.fire();
      }),
    ];
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    if (!settings.showsLenses()) return [];
    const costs = await this.costs.of(document).catch(logError);
    return (costs?.functions ?? []).map(({ line, work }) => {
      const last = Math.min(line + work.last - work.line, document.lineCount - 1);
      return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), {
        title: functionText(work),
        tooltip: "Show its spans in the timeline",
        command: "neuron.showSpans",
        arguments: [document.uri, line, last],
      });
    });
  }

  dispose(): void {
    for (const part of [...this.subscriptions, this.changed]) part.dispose();
  }
}

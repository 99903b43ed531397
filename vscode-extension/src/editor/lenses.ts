/** Time, share and MFU above functions and kernels; above a file that changed since, that it did. */

import * as vscode from "vscode";
import { logError } from "../log";
import { settings } from "../settings";
import type { DocumentCosts } from "../source/document_costs";
import type { PlacedCosts, Prediction } from "../source/file_costs";
import { functionText, predictedText, staleText } from "../text/line_text";
import { shortened } from "../text/markdown";
import { duration } from "../text/quantities";

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
    const { current: profile, base, range } = this.costs.data.registry;
    if (!costs || !profile) return [];
    const compared = base && costs.lines.some(({ before }) => before !== undefined) ? [comparisonLens(base.name)] : [];
    const ranged = range ? [rangeLens(range.endNs - range.startNs)] : [];
    const predicted = costs.predicted ? [predictionLens(document, costs.predicted)] : [];
    return [...predicted, ...ranged, ...compared, ...staleLenses(document, costs, profile.name), ...functionLenses(document, costs)];
  }

  dispose(): void {
    for (const part of [...this.subscriptions, this.changed]) part.dispose();
  }
}

function functionLenses(document: vscode.TextDocument, costs: PlacedCosts): vscode.CodeLens[] {
  return costs.functions.map(({ line, work }) => {
    const last = Math.min(line + work.last - work.line, document.lineCount - 1);
    return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), {
      title: functionText(work),
      tooltip: "Show its spans in the timeline",
      command: "neuron.showSpans",
      arguments: [document.uri, line, last],
    });
  });
}

function rangeLens(lengthNs: number): vscode.CodeLens {
  return new vscode.CodeLens(new vscode.Range(0, 0, 0, 0), {
    title: `$(watch) Costs of the ${duration(lengthNs)} chosen on the timeline`,
    tooltip: "Show the costs of the whole profile",
    command: "neuron.showWholeProfile",
  });
}

function predictionLens(document: vscode.TextDocument, prediction: Prediction): vscode.CodeLens {
  return new vscode.CodeLens(new vscode.Range(0, 0, 0, 0), {
    title: `$(beaker) ${predictedText(prediction)}`,
    tooltip: "Simulated while you type; nothing was run. Capture again",
    command: "neuron.captureFile",
    arguments: [document.uri],
  });
}

function comparisonLens(base: string): vscode.CodeLens {
  return new vscode.CodeLens(new vscode.Range(0, 0, 0, 0), {
    title: `$(diff) Times compared with ${shortened(base, 60)}`,
    tooltip: "Stop comparing",
    command: "neuron.stopComparingLines",
  });
}

/** What the user should know before believing the numbers, and what can be done about it. */
function staleLenses(document: vscode.TextDocument, costs: PlacedCosts, profile: string): vscode.CodeLens[] {
  const text = staleText(costs, profile);
  if (text === undefined) return [];
  const top = new vscode.Range(0, 0, 0, 0);
  const isKept = costs.freshness === "moved";
  return [
    new vscode.CodeLens(top, {
      title: `$(history) ${text}`,
      ...(isKept && { tooltip: "Show what changed" }),
      command: isKept ? "neuron.showChanges" : "",
      arguments: [document.uri],
    }),
    new vscode.CodeLens(top, { title: "Capture again", command: "neuron.captureFile", arguments: [document.uri] }),
  ];
}

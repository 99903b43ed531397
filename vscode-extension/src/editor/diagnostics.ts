/** Findings of the advice at their lines, with code actions. */

import * as vscode from "vscode";
import { logError } from "../log";
import type { Finding } from "../server/answers";
import { settings } from "../settings";
import type { DocumentCosts } from "../source/document_costs";
import { isInWorkspace } from "../source/locate";
import { CELL_SCHEME, locateSource } from "../source/notebooks";
import type { Mending } from "./mending";
import { shortened } from "../text/markdown";
import { findingText, isStrong } from "../text/finding_text";

const SOURCE = "neuron advise";
const MOST_INSTRUCTIONS = 2_000_000;

/** A diagnostic that knows its finding. */
export class FindingDiagnostic extends vscode.Diagnostic {
  constructor(
    range: vscode.Range,
    readonly finding: Finding,
  ) {
    const severity = isStrong(finding) ? vscode.DiagnosticSeverity.Warning : vscode.DiagnosticSeverity.Information;
    super(range, shortened(findingText(finding), 1000), severity);
    this.source = SOURCE;
    this.code = finding.rule;
  }
}

export class FindingDiagnostics implements vscode.CodeActionProvider, vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection("neuron");
  private readonly subscriptions: vscode.Disposable[];
  private shown = new Map<string, readonly FindingDiagnostic[]>();
  private round = 0;

  constructor(
    private readonly costs: DocumentCosts,
    private readonly mending: Mending,
  ) {
    const update = (): void => void this.update().catch(logError);
    this.subscriptions = [
      costs.onDidChange(update),
      costs.data.onDidFind(update),
      vscode.workspace.onDidSaveTextDocument(({ uri }) => {
        if (this.shown.has(uri.toString())) update();
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("neuron.diagnostics")) update();
      }),
    ];
  }

  /** Ask for the findings again and show those of files in the workspace. */
  async update(): Promise<void> {
    const round = ++this.round;
    const findings = (await this.isWanted()) ? await this.costs.data.findings() : [];
    const shown = new Map<string, readonly FindingDiagnostic[]>();
    for (const file of new Set(findings.map(({ place }) => place.file))) {
      const located = file === "" ? undefined : await locateSource(file, this.costs.data);
      if (!located || located.isOutside) continue;
      const ofFile = findings.filter(({ place }) => place.file === file);
      shown.set(located.uri.toString(), await this.place(located.uri, ofFile));
    }
    if (round !== this.round) return;
    this.shown = shown;
    this.collection.clear();
    for (const [uri, diagnostics] of shown) this.collection.set(vscode.Uri.parse(uri), diagnostics);
  }

  provideCodeActions(document: vscode.TextDocument, range: vscode.Range): vscode.CodeAction[] {
    const found = this.shown.get(document.uri.toString()) ?? [];
    return found.filter((diagnostic) => diagnostic.range.intersection(range)).flatMap((each) => this.actions(each));
  }

  dispose(): void {
    for (const part of [...this.subscriptions, this.collection]) part.dispose();
  }

  private actions(diagnostic: FindingDiagnostic): vscode.CodeAction[] {
    const { finding } = diagnostic;
    const found = [action("Show the evidence", "neuron.showFinding", diagnostic)];
    if (finding.has_editor) found.unshift(action(this.mending.title(finding), "neuron.mendFinding", diagnostic));
    if (finding.what_if !== "") {
      found.push(action(`Show what-if: ${shortened(finding.what_if, 80)}`, "neuron.showWhatIf", diagnostic));
    }
    return found;
  }

  /** Simulating every gain of a very large profile takes minutes: its findings are shown once they are asked for. */
  private async isWanted(): Promise<boolean> {
    const { data } = this.costs;
    if (!settings.showsDiagnostics() || !data.registry.current) return false;
    return data.hasFindings || (await data.sources()).instructions <= MOST_INSTRUCTIONS;
  }

  private async place(uri: vscode.Uri, findings: readonly Finding[]): Promise<FindingDiagnostic[]> {
    if (!isInWorkspace(uri) && uri.scheme !== CELL_SCHEME) return [];
    const document = await vscode.workspace.openTextDocument(uri);
    const costs = await this.costs.of(document);
    return findings.flatMap((finding) => {
      const line = costs ? costs.place(finding.place.line) : finding.place.line - 1;
      if (line === undefined || line < 0 || line >= document.lineCount) return [];
      const { range, firstNonWhitespaceCharacterIndex } = document.lineAt(line);
      return [new FindingDiagnostic(range.with(range.start.with(line, firstNonWhitespaceCharacterIndex)), finding)];
    });
  }
}

function action(title: string, command: string, diagnostic: FindingDiagnostic): vscode.CodeAction {
  const found = new vscode.CodeAction(`Neuron: ${title}`, vscode.CodeActionKind.QuickFix);
  found.command = { title, command, arguments: [diagnostic.finding] };
  found.diagnostics = [diagnostic];
  return found;
}

/** The edit that mends a finding: shown as a diff, measured by capturing again, written where the user says so. */

import { execFile } from "node:child_process";
import { basename } from "node:path";
import * as vscode from "vscode";
import type { ResultDocuments } from "../commands/documents";
import type { Edit, Finding } from "../server/answers";
import { UntrustedError, type Connection } from "../server/connection";
import { findPython } from "../server/interpreters";
import type { DocumentCosts } from "../source/document_costs";
import { locate } from "../source/locate";
import { gainText, isSameFinding, measuredText, type Measured } from "../text/finding_text";
import { noticeText, shortened } from "../text/markdown";

const APPLY = "Apply";
const MEASURE = "Measure";
const LARGEST_ANSWER = 16 << 20;
const LONGEST_TITLE = 80;

/** A finding with its number, and the document that its edit is about. */
interface Mendable {
  readonly number: number;
  readonly finding: Finding;
  readonly edit: Edit & { readonly title: string; readonly text: string };
  readonly document: vscode.TextDocument;
}

export class Mending implements vscode.Disposable {
  private measured: { readonly finding: Finding; readonly measured: Measured }[] = [];
  private readonly subscription: vscode.Disposable;

  constructor(
    private readonly connection: Connection,
    private readonly costs: DocumentCosts,
    private readonly results: ResultDocuments,
  ) {
    this.subscription = costs.data.onDidChange(() => (this.measured = []));
  }

  dispose(): void {
    this.subscription.dispose();
  }

  /** What the light bulb says: the gain that was measured, else what is promised. */
  title(finding: Finding): string {
    const known = this.measured.find((each) => isSameFinding(each.finding, finding));
    return `Mend it... ${known ? measuredText(known.measured) : gainText(finding)}`;
  }

  /** Show the edit beside the code, and do with it what the user wants. */
  async mend(finding: Finding): Promise<void> {
    const mendable = await this.find(finding);
    if (typeof mendable === "string") {
      void vscode.window.showInformationMessage(noticeText(mendable));
      return;
    }
    const { document, edit } = mendable;
    const title = `${basename(document.uri.path)}: ${shortened(edit.title, LONGEST_TITLE)}`;
    await vscode.commands.executeCommand("vscode.diff", document.uri, this.results.python(title, edit.text), title);
    let question = `${edit.title}. ${gainText(finding)}, as simulated.`;
    for (let options = [APPLY, MEASURE]; ; options = [APPLY]) {
      const chosen = await vscode.window.showInformationMessage(noticeText(question), ...options);
      if (chosen === APPLY) return apply(mendable);
      if (chosen !== MEASURE) return;
      question = `${edit.title}. ${measuredText(await this.measure(mendable))}`;
    }
  }

  /** The edit of a finding and its document, or a sentence that says why there is none. */
  private async find(finding: Finding): Promise<Mendable | string> {
    const { data } = this.costs;
    const { current } = data.registry;
    const number = (await data.findings()).findIndex((each) => isSameFinding(each, finding)) + 1;
    if (!current || number === 0) return "The finding is of another profile.";
    const id = await data.registry.idOf(current);
    const edit = await this.connection.ask((client) => client.edit(id, number));
    if (edit.title === null || edit.text === null) return edit.reason ?? "No edit can be derived.";
    const located = await locate(finding.place.file);
    if (!located || located.isOutside) return "The file is not in this workspace.";
    const document = await vscode.workspace.openTextDocument(located.uri);
    const costs = await this.costs.of(document);
    if (costs?.freshness !== "same") return "The file has changed since the capture: capture it again first.";
    return { number, finding, edit: { ...edit, title: edit.title, text: edit.text }, document };
  }

  /** Capture the program again with the edit, in a copy of its folder. */
  private async measure({ number, finding, document }: Mendable): Promise<Measured> {
    const { current } = this.costs.data.registry;
    if (!vscode.workspace.isTrusted) throw new UntrustedError("Measuring runs the program: trust the workspace first.");
    if (this.connection.isRemote || !current) throw new Error("Measure where the program was captured.");
    const folder = vscode.workspace.getWorkspaceFolder(document.uri);
    const args = ["-m", "neuron_profile.cli", "fix", current.path, "--finding", number.toString(), "--json"];
    const python = await findPython();
    const title = "Capturing the program again with the edit, and comparing its values";
    const answer = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title, cancellable: true },
      (_, cancellation) => run(python, args, folder?.uri.fsPath, cancellation),
    );
    const measured = JSON.parse(answer) as Measured;
    if (measured.rule !== finding.rule || measured.line !== finding.place.line) {
      throw new Error("The command's findings are in another order: run `neuron-profile fix` in a terminal.");
    }
    this.measured.push({ finding, measured });
    return measured;
  }
}

async function apply({ document, edit }: Mendable): Promise<void> {
  const change = new vscode.WorkspaceEdit();
  const end = document.lineAt(document.lineCount - 1).range.end;
  change.replace(document.uri, new vscode.Range(new vscode.Position(0, 0), end), edit.text);
  await vscode.workspace.applyEdit(change);
  await vscode.window.showTextDocument(document);
}

/** What a program prints; exit status 1, where the edit is not worth it, is an answer too. */
function run(
  python: string,
  args: readonly string[],
  cwd: string | undefined,
  cancellation: vscode.CancellationToken,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(python, args, { maxBuffer: LARGEST_ANSWER, ...(cwd && { cwd }) }, (error, stdout, stderr) => {
      if (stdout.trim() !== "") resolve(stdout);
      else reject(new Error(stderr.trim() || (error?.message ?? "The program printed nothing.")));
    });
    cancellation.onCancellationRequested(() => child.kill());
  });
}

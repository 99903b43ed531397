/** From spans to lines and from lines to spans. */

import { basename } from "node:path";
import * as vscode from "vscode";
import { logError } from "../log";
import type { ProfileRef, ProfileRegistry } from "../profiles/registry";
import type { FoundSpan, SourceFrame } from "../server/answers";
import type { Connection } from "../server/connection";
import { capturedUri } from "../source/captured";
import type { DocumentCosts } from "../source/document_costs";
import { nextHottest } from "../source/file_costs";
import { isInWorkspace } from "../source/locate";
import { cellOf, codeCells, locateSource } from "../source/notebooks";
import { isInstalled } from "../source/paths";
import type { SourceOpener } from "../timeline/session";
import type { Timelines } from "../timeline/timelines";
import { duration, percent } from "../text/quantities";
import { noticeText } from "../text/markdown";

const PAUSE_MS = 250;
const MARGIN_SHARE = 0.05;
const MOST_ATTEMPTS = 5;

export class Navigation implements SourceOpener, vscode.Disposable {
  private readonly subscription: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;
  private readonly allowed = new Set<string>();
  timelines: Timelines | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly registry: ProfileRegistry,
    private readonly costs: DocumentCosts,
    private readonly follows: () => boolean,
  ) {
    this.subscription = vscode.window.onDidChangeTextEditorSelection(({ textEditor, kind }) => {
      if (kind !== undefined) this.followSoon(textEditor);
    });
  }

  /** Open the line that a span came from. */
  async openSpan(profile: ProfileRef, track: string, row: number, from: vscode.ViewColumn | undefined): Promise<void> {
    const id = await this.registry.idOf(profile);
    const { stack } = await this.connection.ask((client) => client.span(id, track, row));
    const [first] = stack;
    if (!first) return;
    let outside: { readonly uri: vscode.Uri; readonly frame: SourceFrame } | undefined;
    for (const frame of stack) {
      const found = await locateSource(frame.file, this.costs.data);
      if (found && !found.isOutside && !isInstalled(frame.file)) {
        await this.openLine(found.uri, frame, columnBeside(from));
        return;
      }
      if (found) outside ??= { uri: found.uri, frame };
    }
    if (!outside) await this.explainMissing(profile, first, from);
    else if (isInWorkspace(outside.uri) || (await this.isAllowed(outside.uri))) {
      await this.openLine(outside.uri, outside.frame, columnBeside(from));
    }
  }

  /** Open a line of the profile's numbering, where it stands now. */
  async openLine(uri: vscode.Uri, place: { readonly line: number }, column: vscode.ViewColumn): Promise<void> {
    const document = await vscode.workspace.openTextDocument(uri);
    const costs = await this.costs.of(document).catch(logError);
    const line = Math.min(costs?.place(place.line) ?? place.line - 1, document.lineCount - 1);
    const range = document.lineAt(Math.max(line, 0)).range;
    const cell = cellOf(document);
    if (cell) await showCell(cell, column, true);
    else await vscode.window.showTextDocument(document, { viewColumn: column, preserveFocus: true });
    select(document, range);
  }

  /** Open a place of the profile by its path there; ask or explain where it is not in the workspace. */
  async openPlace(file: string, line: number, from?: vscode.ViewColumn): Promise<void> {
    const profile = this.registry.current;
    if (!profile) return;
    const frame = { file, line, function: "" };
    const found = await locateSource(file, this.costs.data);
    if (!found) await this.explainMissing(profile, frame, from);
    else if (!found.isOutside || (await this.isAllowed(found.uri))) {
      await this.openLine(found.uri, frame, from === undefined ? vscode.ViewColumn.Active : columnBeside(from));
    }
  }

  /** Compare a file with the text that was captured. */
  async showChanges(uri: vscode.Uri): Promise<void> {
    const profile = this.registry.current;
    const costs = await this.costs.of(await vscode.workspace.openTextDocument(uri));
    if (!profile || !costs) {
      void vscode.window.showInformationMessage("The chosen profile has nothing of this file.");
      return;
    }
    const title = `${basename(uri.path)}: ${profile.name} ↔ now`;
    await vscode.commands.executeCommand("vscode.diff", capturedUri(profile, costs.path), uri, title);
  }

  /** Mark the spans of lines in the timeline, which comes to the front. */
  async showSpans(uri: vscode.Uri, first: number, last: number): Promise<void> {
    const wanted = await this.recordedLines(uri, first, last);
    const profile = this.registry.current;
    if (!wanted || !profile || !this.timelines) return;
    await this.timelines.reveal(profile);
    this.timelines.show(profile, { search: searchText(wanted) });
  }

  /** Zoom the timeline into the instructions of lines, and mark all their spans. */
  async zoom(uri: vscode.Uri, first: number, last: number): Promise<void> {
    const wanted = await this.recordedLines(uri, first, last);
    const profile = this.registry.current;
    if (!wanted || !profile || !this.timelines) return;
    const id = await this.registry.idOf(profile);
    const { spans } = await this.connection.ask((client) => client.spans(id, wanted.path, wanted.first, wanted.last));
    if (spans.length === 0) {
      void vscode.window.showInformationMessage("The selected lines have no spans in this profile.");
      return;
    }
    await this.timelines.reveal(profile);
    this.timelines.show(profile, { range: rangeOf(oneOccurrence(spans)), search: searchText(wanted) });
  }

  /** Move the cursor to the next line by cost. */
  async nextHottestLine(editor: vscode.TextEditor): Promise<void> {
    const cell = cellOf(editor.document);
    const documents = cell ? codeCells(cell.notebook).map(({ document }) => document) : [editor.document];
    const found = await Promise.all(documents.map(async (document) => (await this.costs.of(document))?.lines ?? []));
    // Lines of all cells of a notebook are ranked together.
    const lines = found.flatMap((ofOne, index) => ofOne.map((row) => ({ ...row, document: documents[index]! })));
    const { line } = editor.selection.active;
    const next = nextHottest(lines, (row) => row.document === editor.document && row.line === line);
    if (!next) {
      void vscode.window.showInformationMessage("No line of this file has device time in the chosen profile.");
      return;
    }
    const other = next.document === editor.document ? undefined : cellOf(next.document);
    if (other) await showCell(other, editor.viewColumn ?? vscode.ViewColumn.Active, false);
    select(next.document, next.document.lineAt(next.line).range, editor);
    const text = `Line ${next.line + 1}: ${duration(next.shown.device_ns)}, ${percent(next.shown.share)} of the device time`;
    vscode.window.setStatusBarMessage(text, 5000);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscription.dispose();
  }

  private followSoon(editor: vscode.TextEditor): void {
    clearTimeout(this.timer);
    const profile = this.registry.current;
    if (!this.follows() || !profile || !this.timelines?.isOpen(profile)) return;
    this.timer = setTimeout(() => void this.follow(editor, profile).catch(logError), PAUSE_MS);
  }

  private async follow(editor: vscode.TextEditor, profile: ProfileRef): Promise<void> {
    const { start, end } = editor.selection;
    const wanted = await this.recordedLines(editor.document.uri, start.line, end.line);
    this.timelines?.show(profile, { search: wanted ? searchText(wanted) : "" });
  }

  /** Lines of the profile that stand at lines of a document; undefined where there are none with cost. */
  private async recordedLines(uri: vscode.Uri, first: number, last: number): Promise<RecordedLines | undefined> {
    const costs = await this.costs.of(await vscode.workspace.openTextDocument(uri));
    if (!costs) return undefined;
    const lines = costs.lines.filter(({ line }) => line >= first && line <= last).map((row) => row.recordedLine);
    if (lines.length === 0) return undefined;
    return { path: costs.path, first: Math.min(...lines), last: Math.max(...lines) };
  }

  /** Ask before a file outside the workspace is opened: a profile names files as it likes. */
  private async isAllowed(uri: vscode.Uri): Promise<boolean> {
    if (this.allowed.has(uri.toString())) return true;
    const question = `The profile points to ${noticeText(uri.fsPath)}, which is outside this workspace.`;
    const isAllowed = (await vscode.window.showWarningMessage(question, "Open It")) === "Open It";
    if (isAllowed) this.allowed.add(uri.toString());
    return isAllowed;
  }

  private async explainMissing(
    profile: ProfileRef,
    frame: SourceFrame,
    from: vscode.ViewColumn | undefined,
  ): Promise<void> {
    const text = `${noticeText(frame.file)} is not here. If it is under another folder, map it with neuron.pathMappings.`;
    const chosen = await vscode.window.showWarningMessage(text, "Show as Captured", "Open Setting");
    if (chosen === "Open Setting") {
      await vscode.commands.executeCommand("workbench.action.openSettings", "neuron.pathMappings");
    } else if (chosen === "Show as Captured") {
      await this.openLine(capturedUri(profile, frame.file), frame, columnBeside(from));
    }
  }
}

/** Bring a cell of a notebook into sight; without `preserveFocus`, the keyboard goes into it. */
async function showCell(cell: vscode.NotebookCell, viewColumn: vscode.ViewColumn, preserveFocus: boolean): Promise<void> {
  const selection = new vscode.NotebookRange(cell.index, cell.index + 1);
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
    const options = { viewColumn, preserveFocus, selections: [selection] };
    const editor = await vscode.window.showNotebookDocument(cell.notebook, options);
    editor.revealRange(selection, vscode.NotebookEditorRevealType.InCenterIfOutsideViewport);
    if (preserveFocus) return;
    await vscode.commands.executeCommand("notebook.cell.edit");
    if (vscode.window.activeTextEditor?.document === cell.document) return;
    // A command palette that closes gives the keyboard back to the cell where it was.
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Put the cursor at a range of a document where it is in sight, and reveal it. */
function select(document: vscode.TextDocument, range: vscode.Range, known?: vscode.TextEditor): void {
  const editor = vscode.window.visibleTextEditors.find((each) => each.document === document) ?? known;
  if (editor?.document !== document) return;
  editor.selection = new vscode.Selection(range.start, range.start);
  editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

interface RecordedLines {
  readonly path: string;
  readonly first: number;
  readonly last: number;
}

function searchText({ path, first, last }: RecordedLines): string {
  return `lines=${path}:${first}-${last}`;
}

/** The longest operation of the lines, for a line runs once a step; in a kernel, which is one, all instructions. */
function oneOccurrence(spans: readonly FoundSpan[]): readonly FoundSpan[] {
  const of = (table: string): FoundSpan[] => spans.filter((span) => span.table === table);
  const [longest] = of("FrameworkInstruction").sort((one, other) => other.duration_ns - one.duration_ns);
  if (longest) return [longest];
  const instructions = of("Instruction");
  return instructions.length > 0 ? instructions : spans;
}

function rangeOf(spans: readonly { start_ns: number; duration_ns: number }[]): { startNs: number; endNs: number } {
  const start = Math.min(...spans.map((span) => span.start_ns));
  const end = Math.max(...spans.map((span) => span.start_ns + span.duration_ns));
  const margin = Math.max(1, (end - start) * MARGIN_SHARE);
  return { startNs: start - margin, endNs: end + margin };
}

/** A column that the timeline does not cover. */
function columnBeside(from: vscode.ViewColumn | undefined): vscode.ViewColumn {
  const other = vscode.window.visibleTextEditors.find(({ viewColumn }) => viewColumn !== undefined && viewColumn !== from);
  return other?.viewColumn ?? vscode.ViewColumn.Beside;
}

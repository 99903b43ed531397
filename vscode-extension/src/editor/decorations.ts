/** Costs beside the code: text at the end of lines, heat in the gutter and in the overview ruler. */

import * as vscode from "vscode";
import { logError } from "../log";
import { settings } from "../settings";
import type { DocumentCosts } from "../source/document_costs";
import type { CostedLine, PlacedCosts } from "../source/file_costs";
import { lineText } from "../text/line_text";
import { HEAT_COLOURS, heatIcon, heatOf } from "./heat";

const EDIT_PAUSE_MS = 150;
/** Lines above and below those in sight that get their text too, a moment later: each text is a style rule of its own. */
const MARGIN_LINES = 60;
const MARGIN_PAUSE_MS = 120;
/** Lines taken for those in sight of an editor that is not laid out yet. */
const FIRST_LINES = 60;
const MARGIN = "0 0 0 3em";

/** What an editor shows: costs of lines from `first` to `last`. */
interface Shown {
  readonly costs: PlacedCosts;
  readonly version: number;
  readonly first: number;
  readonly last: number;
}

export class LineDecorations implements vscode.Disposable {
  private readonly text = vscode.window.createTextEditorDecorationType({
    after: { margin: MARGIN, color: new vscode.ThemeColor("editorCodeLens.foreground") },
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  private readonly heat = HEAT_COLOURS.map((colour, step) => heatDecoration(colour, step));
  private readonly subscriptions: vscode.Disposable[];
  private readonly shown = new WeakMap<vscode.TextEditor, Shown>();
  private readonly pending = new Map<vscode.TextDocument, NodeJS.Timeout>();
  private readonly margins = new Map<vscode.TextEditor, NodeJS.Timeout>();
  /** The last time that each editor was to be drawn: an answer that is overtaken by another is not drawn. */
  private readonly rounds = new WeakMap<vscode.TextEditor, number>();
  /** Editors that have heat. */
  private readonly heated = new WeakSet<vscode.TextEditor>();

  constructor(private readonly costs: DocumentCosts) {
    this.subscriptions = [
      vscode.window.onDidChangeVisibleTextEditors(() => this.showAll()),
      vscode.window.onDidChangeTextEditorVisibleRanges(({ textEditor }) => this.scrolled(textEditor)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.showSoon(document)),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("neuron")) this.showAll();
      }),
      costs.onDidChange(() => this.showAll()),
    ];
    this.showAll();
  }

  showAll(): void {
    for (const editor of vscode.window.visibleTextEditors) this.show(editor).catch(logError);
  }

  dispose(): void {
    for (const timer of [...this.pending.values(), ...this.margins.values()]) clearTimeout(timer);
    for (const part of [...this.subscriptions, this.text, ...this.heat]) part.dispose();
  }

  private showSoon(document: vscode.TextDocument): void {
    clearTimeout(this.pending.get(document));
    const show = (): void => {
      this.pending.delete(document);
      for (const editor of vscode.window.visibleTextEditors) {
        if (editor.document === document) this.show(editor).catch(logError);
      }
    };
    this.pending.set(document, setTimeout(show, EDIT_PAUSE_MS));
  }

  private async show(editor: vscode.TextEditor): Promise<void> {
    if (editor.document.languageId !== "python") return;
    const round = (this.rounds.get(editor) ?? 0) + 1;
    this.rounds.set(editor, round);
    const { version } = editor.document;
    const costs = settings.showsDecorations() ? await this.costs.of(editor.document) : undefined;
    if (editor.document.version === version && this.rounds.get(editor) === round) this.draw(editor, costs);
  }

  private draw(editor: vscode.TextEditor, costs: PlacedCosts | undefined): void {
    clearTimeout(this.margins.get(editor));
    this.shown.delete(editor);
    if (costs) this.drawTexts(editor, costs, 0);
    else editor.setDecorations(this.text, []);
    // A new editor gets its texts first, and heat with those around them; later both at once, or the ruler would flicker.
    if (this.heated.has(editor)) this.drawHeat(editor, costs);
  }

  private drawHeat(editor: vscode.TextEditor, costs: PlacedCosts | undefined): void {
    const lines = (costs?.lines ?? []).filter(({ shown }) => shown.device_ns > 0);
    const hottest = costs?.hottestNs ?? lines.reduce((most, { shown }) => Math.max(most, shown.device_ns), 0);
    const ranges = HEAT_COLOURS.map((): vscode.Range[] => []);
    for (const { line, shown } of lines) {
      ranges[heatOf(shown.device_ns, hottest)]?.push(editor.document.lineAt(line).range);
    }
    this.heat.forEach((decoration, step) => editor.setDecorations(decoration, ranges[step] ?? []));
    this.heated.add(editor);
  }

  /** The texts of the lines in sight at once, and of some around them a moment later. */
  private drawTexts(editor: vscode.TextEditor, costs: PlacedCosts, margin: number): void {
    const ranges = editor.visibleRanges;
    const first = Math.min(...ranges.map(({ start }) => start.line), Infinity) - margin;
    const last = Math.max(...ranges.map(({ end }) => end.line), -Infinity) + margin;
    const sight = ranges.length > 0 ? { first, last } : { first: 0, last: FIRST_LINES };
    this.shown.set(editor, { costs, version: editor.document.version, ...sight });
    const lines = costs.lines.filter((row) => isShown(row) && row.line >= sight.first && row.line <= sight.last);
    editor.setDecorations(this.text, endTexts(editor.document, lines, costs.freshness === "unknown"));
    if (margin === 0) this.drawMarginSoon(editor);
  }

  private drawMarginSoon(editor: vscode.TextEditor): void {
    clearTimeout(this.margins.get(editor));
    const draw = (): void => {
      this.margins.delete(editor);
      const shown = this.shown.get(editor);
      const isThere = vscode.window.visibleTextEditors.includes(editor);
      if (!shown || !isThere || shown.version !== editor.document.version) return;
      this.drawTexts(editor, shown.costs, MARGIN_LINES);
      if (!this.heated.has(editor)) this.drawHeat(editor, shown.costs);
    };
    this.margins.set(editor, setTimeout(draw, MARGIN_PAUSE_MS));
  }

  private scrolled(editor: vscode.TextEditor): void {
    const shown = this.shown.get(editor);
    if (!shown || shown.version !== editor.document.version) return;
    const isCovered = editor.visibleRanges.every(({ start, end }) => start.line >= shown.first && end.line <= shown.last);
    if (!isCovered) this.drawTexts(editor, shown.costs, 0);
  }
}

function heatDecoration(colour: string, step: number): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({
    gutterIconPath: vscode.Uri.parse(`data:image/svg+xml;base64,${Buffer.from(heatIcon(step)).toString("base64")}`),
    gutterIconSize: "contain",
    overviewRulerColor: colour,
    overviewRulerLane: vscode.OverviewRulerLane.Right,
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
}

/** It costs something, or did in the profile that this one is compared with. */
function isShown({ shown, before }: CostedLine): boolean {
  return shown.device_ns > 0 || (before?.device_ns ?? 0) > 0;
}

function endTexts(
  document: vscode.TextDocument,
  lines: readonly CostedLine[],
  isStale: boolean,
): vscode.DecorationOptions[] {
  const contents = settings.decorationContents();
  const least = settings.minimumShare();
  return lines
    .filter(({ shown, before }) => Math.max(shown.share, before?.share ?? 0) >= least)
    .map(({ line, shown, before }) => {
      const contentText = `${isStale ? "stale? " : ""}${lineText(shown, contents, before)}`;
      return { range: document.lineAt(line).range, renderOptions: { after: { contentText } } };
    });
}

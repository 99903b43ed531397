/** Costs of open documents: which file of the profile each one is, and where its lines stand now. */

import { createHash } from "node:crypto";
import * as vscode from "vscode";
import { logError } from "../log";
import type { ProfileData, Which } from "../profiles/data";
import type { Preview, SourceFile, SourceText } from "../server/answers";
import { settings } from "../settings";
import { CAPTURED_SCHEME, readCapturedUri } from "./captured";
import { isCell, likeness } from "./cells";
import { compareCosts, placeCosts, predictCosts, type PlacedCosts } from "./file_costs";
import { isInWorkspace } from "./locate";
import { CELL_SCHEME, cellOf, MOST_CELLS, recordedCell } from "./notebooks";
import { recordedPath } from "./paths";

const LARGEST_DOCUMENT = 4 << 20;

interface Kept {
  readonly version: number;
  readonly costs: Promise<PlacedCosts | undefined>;
}

export class DocumentCosts implements vscode.Disposable {
  private kept = new WeakMap<vscode.TextDocument, Kept>();
  private previews = new WeakMap<vscode.TextDocument, { readonly version: number; readonly preview: Preview }>();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscriptions: vscode.Disposable[];
  /** What was answered before is no longer true: another profile, another server, or other rules for paths. */
  readonly onDidChange = this.changed.event;

  constructor(readonly data: ProfileData) {
    this.subscriptions = [
      data.onDidChange(() => this.forget()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("neuron.pathMappings")) this.forget();
      }),
    ];
  }

  /**
   * The costs of a document's lines, of the profile that is chosen when they are known; undefined where it has
   * nothing of the document.
   *
   * @throws As `Connection.ask`.
   */
  of(document: vscode.TextDocument): Promise<PlacedCosts | undefined> {
    if (!this.data.registry.current || !isSource(document)) return Promise.resolve(undefined);
    const known = this.kept.get(document);
    if (known?.version === document.version) return known.costs;
    const kept = { version: document.version, costs: this.newest(document) };
    this.kept.set(document, kept);
    kept.costs.catch(() => {
      if (this.kept.get(document) === kept) this.kept.delete(document);
    });
    return kept.costs;
  }

  /** Let a document's lines show what a version of it would cost. */
  predict(document: vscode.TextDocument, version: number, preview: Preview): void {
    this.previews.set(document, { version, preview });
    this.kept.delete(document);
    this.changed.fire();
  }

  dispose(): void {
    for (const part of [...this.subscriptions, this.changed]) part.dispose();
  }

  private forget(): void {
    this.kept = new WeakMap();
    this.previews = new WeakMap();
    this.changed.fire();
  }

  /** Costs that were overtaken while the server was asked are asked for again. */
  private async newest(document: vscode.TextDocument): Promise<PlacedCosts | undefined> {
    const { kept } = this;
    try {
      const costs = await this.compute(document);
      if (kept === this.kept) return costs;
    } catch (error) {
      if (kept === this.kept) throw error;
    }
    return this.of(document);
  }

  /** What a cell's costs have that no file's have: heat is relative to all cells, and a magic above it is no change. */
  private async ofCells(
    files: readonly SourceFile[],
    source: SourceText | undefined,
    text: string,
    which: Which,
  ): Promise<Partial<PlacedCosts>> {
    const cells = files.filter(({ path }) => isCell(path));
    const costs = await Promise.all(cells.slice(-MOST_CELLS).map(({ path }) => this.data.lines(path, which)));
    const times = costs.flatMap(({ lines }) => lines.map((line) => Math.max(line.own_code.device_ns, line.device_ns)));
    const isSame = source?.text != null && likeness(source.text, text) === 1;
    return { hottestNs: Math.max(0, ...times), ...(isSame && { freshness: "same" as const }) };
  }

  private async compute(document: vscode.TextDocument): Promise<PlacedCosts | undefined> {
    const { range } = this.data.registry;
    const base = range ? undefined : this.data.registry.base; // a part is not compared with a whole
    const [costs, before] = await Promise.all([
      this.read(document, "chosen"),
      // Costs are worth seeing without what they are compared with, too.
      base && this.read(document, "base").catch(logError),
    ]);
    if (costs && before) return compareCosts(costs, before);
    const known = range ? undefined : this.previews.get(document);
    return costs && known?.version === document.version ? predictCosts(costs, known.preview) : costs;
  }

  private async read(document: vscode.TextDocument, which: Which): Promise<PlacedCosts | undefined> {
    const { files } = await this.data.sources(which);
    const folder = vscode.workspace.getWorkspaceFolder(document.uri);
    const recorded = files.map((file) => file.path);
    const captured = readCapturedUri(document.uri)?.file;
    const cell = cellOf(document);
    const path = cell
      ? await recordedCell(cell, files, this.data, which)
      : (captured ?? recordedPath(document.uri.path, recorded, settings.pathMappings(folder), folder?.uri.path));
    if (path === undefined) return undefined;
    const file = files.find((candidate) => candidate.path === path);
    const text = document.getText();
    const isSame = file?.sha256 != null && file.sha256 === sha256(text);
    const [costs, source] = await Promise.all([
      this.data.lines(path, which),
      isSame || file?.sha256 == null ? undefined : this.data.source(path, which),
    ]);
    const placed = placeCosts(costs, isSame ? { path, sha256: file.sha256, text } : source, text);
    return cell ? { ...placed, ...(await this.ofCells(files, source, text, which)) } : placed;
  }
}

/** Whether a document may be a file that ran: Python of the workspace, one that the user opened, or a captured text. */
function isSource(document: vscode.TextDocument): boolean {
  const { scheme } = document.uri;
  const isFile = scheme === "file" || scheme === CELL_SCHEME || scheme === CAPTURED_SCHEME || isInWorkspace(document.uri);
  return isFile && document.languageId === "python" && document.lineCount * 8 < LARGEST_DOCUMENT;
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

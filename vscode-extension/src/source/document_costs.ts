/** Costs of open documents: which file of the profile each one is, and where its lines stand now. */

import { createHash } from "node:crypto";
import * as vscode from "vscode";
import type { ProfileData } from "../profiles/data";
import { settings } from "../settings";
import { CAPTURED_SCHEME, readCapturedUri } from "./captured";
import { placeCosts, type PlacedCosts } from "./file_costs";
import { isInWorkspace } from "./locate";
import { recordedPath } from "./paths";

const LARGEST_DOCUMENT = 4 << 20;

interface Kept {
  readonly version: number;
  readonly costs: Promise<PlacedCosts | undefined>;
}

export class DocumentCosts implements vscode.Disposable {
  private kept = new WeakMap<vscode.TextDocument, Kept>();
  private readonly subscription: vscode.Disposable;

  constructor(readonly data: ProfileData) {
    this.subscription = data.onDidChange(() => (this.kept = new WeakMap()));
  }

  /**
   * The costs of a document's lines; undefined where the profile has nothing of it.
   *
   * @throws As `Connection.ask`.
   */
  of(document: vscode.TextDocument): Promise<PlacedCosts | undefined> {
    if (!this.data.registry.current || !isSource(document)) return Promise.resolve(undefined);
    const known = this.kept.get(document);
    if (known?.version === document.version) return known.costs;
    const costs = this.compute(document);
    this.kept.set(document, { version: document.version, costs });
    costs.catch(() => this.kept.delete(document));
    return costs;
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private async compute(document: vscode.TextDocument): Promise<PlacedCosts | undefined> {
    const { files } = await this.data.sources();
    const folder = vscode.workspace.getWorkspaceFolder(document.uri);
    const recorded = files.map((file) => file.path);
    const captured = readCapturedUri(document.uri)?.file;
    const path = captured ?? recordedPath(document.uri.path, recorded, settings.pathMappings(folder), folder?.uri.path);
    if (path === undefined) return undefined;
    const file = files.find((candidate) => candidate.path === path);
    const text = document.getText();
    const isSame = file?.sha256 != null && file.sha256 === sha256(text);
    const [costs, source] = await Promise.all([
      this.data.lines(path),
      isSame || file?.sha256 == null ? undefined : this.data.source(path),
    ]);
    return placeCosts(costs, isSame ? { path, sha256: file.sha256, text } : source, text);
  }
}

/** Whether a document may be a file that ran: Python of the workspace, one that the user opened, or a captured text. */
function isSource(document: vscode.TextDocument): boolean {
  const { scheme } = document.uri;
  const isFile = scheme === "file" || scheme === CAPTURED_SCHEME || isInWorkspace(document.uri);
  return isFile && document.languageId === "python" && document.lineCount * 8 < LARGEST_DOCUMENT;
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

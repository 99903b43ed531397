/** Cells of notebooks: which file of the profile each one is, and the other way round. */

import * as vscode from "vscode";
import type { ProfileData, Which } from "../profiles/data";
import type { SourceFile } from "../server/answers";
import { settings } from "../settings";
import { captureOf, isUnnumberedCell, numberedCell } from "./cells";
import { locate, type LocatedFile } from "./locate";
import { recordedPath } from "./paths";

export const CELL_SCHEME = "vscode-notebook-cell";
export const MOST_CELLS = 200;

/** The cell that a document is; undefined where it is none. */
export function cellOf(document: vscode.TextDocument): vscode.NotebookCell | undefined {
  if (document.uri.scheme !== CELL_SCHEME) return undefined;
  const cells = vscode.workspace.notebookDocuments.flatMap((notebook) => notebook.getCells());
  return cells.find((cell) => cell.document === document);
}

/** The code cells of a notebook, in order: as running all of them numbers them, from 1. */
export function codeCells(notebook: vscode.NotebookDocument): vscode.NotebookCell[] {
  return notebook.getCells().filter(({ kind }) => kind === vscode.NotebookCellKind.Code);
}

/**
 * The file of a profile that a cell is: by the notebook's path and the cell's number where they are known, else by the
 * text, which is all that Jupyter's kernels tell.
 */
export async function recordedCell(
  cell: vscode.NotebookCell,
  files: readonly SourceFile[],
  data: ProfileData,
  which: Which,
): Promise<string | undefined> {
  const { notebook } = cell;
  const named = files.flatMap(({ path }) => ({ path, ...numberedCell(path) }));
  const notebooks = [...new Set(named.flatMap((each) => each.notebook ?? []))];
  const folder = vscode.workspace.getWorkspaceFolder(notebook.uri);
  const ours = recordedPath(notebook.uri.path, notebooks, settings.pathMappings(folder), folder?.uri.path);
  const candidates = named.filter((each) => (ours === undefined ? isUnnumberedCell(each.path) : each.notebook === ours));
  const texts = await Promise.all(candidates.slice(-MOST_CELLS).map(({ path }) => data.source(path, which)));
  const text = cell.document.getText();
  const number = codeCells(notebook).indexOf(cell) + 1;
  const sameNumber = candidates.find((each) => each.number === number)?.path;
  const sameText = captureOf(text, texts)?.path;
  return sameText ?? sameNumber;
}

/** The cell here that a file of a profile is; undefined where it is none of an open notebook or of the workspace. */
export async function locateCell(path: string, data: ProfileData): Promise<vscode.NotebookCell | undefined> {
  const numbered = numberedCell(path);
  if (!numbered && !isUnnumberedCell(path)) return undefined;
  const located = numbered && (await locate(numbered.notebook));
  const notebook = located && !located.isOutside ? await vscode.workspace.openNotebookDocument(located.uri) : undefined;
  const { files } = await data.sources();
  for (const cell of vscode.workspace.notebookDocuments.flatMap(codeCells)) {
    if ((await recordedCell(cell, files, data, "chosen")) === path) return cell;
  }
  return notebook && numbered && codeCells(notebook)[numbered.number - 1]; // a profile that is not the chosen one
}

/** The file or cell here that a file of a profile is. */
export async function locateSource(path: string, data: ProfileData): Promise<LocatedFile | undefined> {
  const cell = await locateCell(path, data);
  return cell ? { uri: cell.document.uri, isOutside: false } : locate(path);
}

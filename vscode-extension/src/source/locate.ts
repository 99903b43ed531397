/** Finds the file of the workspace that a path in a profile means. */

import * as vscode from "vscode";
import { settings } from "../settings";
import { candidateEnds, isInside, mapPath } from "./paths";

const MOST_ENDS = 12;

/** A file that was found, and whether opening it needs the user's consent: it lies outside the workspace. */
export interface LocatedFile {
  readonly uri: vscode.Uri;
  readonly isOutside: boolean;
}

/** The file here; undefined where there is none. */
export async function locate(path: string): Promise<LocatedFile | undefined> {
  for (const candidate of candidates(path)) {
    if (await isFile(candidate)) return { uri: candidate, isOutside: !isInWorkspace(candidate) };
  }
  return undefined;
}

/** Whether a file lies in a folder of the workspace. */
export function isInWorkspace(uri: vscode.Uri): boolean {
  return (vscode.workspace.workspaceFolders ?? []).some(
    (folder) => folder.uri.scheme === uri.scheme && isInside(uri.path, folder.uri.path),
  );
}

/** What to look at, in order: the rules, the path itself, then ends of it in the workspace's folders. */
function* candidates(path: string): Generator<vscode.Uri> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (path.includes("\0") || path.split("/").includes("..")) return;
  for (const folder of folders) {
    const mapped = mapPath(path, settings.pathMappings(folder));
    if (mapped !== undefined) yield folder.uri.with({ path: mapped });
  }
  if (path.startsWith("/")) yield vscode.Uri.file(path);
  for (const end of candidateEnds(path).slice(-MOST_ENDS)) {
    for (const folder of folders) yield vscode.Uri.joinPath(folder.uri, end);
  }
}

async function isFile(uri: vscode.Uri): Promise<boolean> {
  try {
    return ((await vscode.workspace.fs.stat(uri)).type & vscode.FileType.File) !== 0;
  } catch {
    return false;
  }
}

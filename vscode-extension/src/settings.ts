/** The extension's settings, typed. */

import * as vscode from "vscode";
import { readMappings, type PathMapping } from "./source/paths";

export const SECTION = "neuron";

export type DecorationContent = "time" | "share" | "instructions" | "bytes" | "engines";

function read<T>(name: string, fallback: T, scope?: vscode.ConfigurationScope): T {
  return vscode.workspace.getConfiguration(SECTION, scope).get<T>(name, fallback);
}

export const settings = {
  python: (): string => read("python", "").trim(),
  endpoint: (): string => read("endpoint", "").trim(),
  target: (): string => read("target", "trn2"),
  captureArguments: (): string[] => read("capture.arguments", []),
  showsDecorations: (): boolean => read("decorations.enabled", true),
  decorationContents: (): DecorationContent[] => read("decorations.contents", []),
  minimumShare: (): number => read("decorations.minimumShare", 0),
  showsLenses: (): boolean => read("codeLens.enabled", true),
  showsDiagnostics: (): boolean => read("diagnostics.enabled", true),
  simulatesEdits: (): boolean => read("whatIf.onEdit", true),
  followsCursor: (): boolean => read("followCursor", true),

  /** The rules for files of other machines, as they hold for a folder of the workspace. */
  pathMappings(folder: vscode.WorkspaceFolder | undefined): PathMapping[] {
    return readMappings(read("pathMappings", {}, folder?.uri), folder?.uri.path ?? "");
  },
};

/** Folders of the user's own code as profiles name them: those of the setting, else the workspace's. */
export function ownFolders(): string[] {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const chosen = read<string[]>("ownCode", []);
  if (chosen.length > 0) return chosen.map((path) => path.replaceAll("${workspaceFolder}", folders[0]?.uri.path ?? ""));
  const mapped = folders.flatMap((folder) => settings.pathMappings(folder).map(({ from }) => from));
  return [...new Set([...folders.map(({ uri }) => uri.path), ...mapped])];
}

/** Change a setting where it is set already, else for the workspace. */
export async function writeSetting(name: string, value: unknown): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const isGlobal = configuration.inspect(name)?.workspaceValue === undefined && !vscode.workspace.workspaceFolders;
  await configuration.update(name, value, isGlobal);
}

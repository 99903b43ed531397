/** The interpreters that the user may mean, in order. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { logError } from "../log";
import { settings } from "../settings";
import { choosePython, type Candidate } from "./python";

/** What is used of the API of the Python extension, `ms-python.python`. */
interface PythonApi {
  readonly environments: {
    readonly onDidChangeActiveEnvironmentPath?: vscode.Event<unknown>;
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(
      path: unknown,
    ): Promise<{ readonly executable: { readonly uri: vscode.Uri | undefined } } | undefined>;
  };
}

const changed = new vscode.EventEmitter<void>();
/** Another interpreter was chosen in the Python extension; told once that was asked for one. */
export const onDidChangeInterpreter = changed.event;
let isWatching = false;

/**
 * A Python that has Neuron Tools.
 *
 * @throws NoPythonError There is none.
 */
export async function findPython(): Promise<string> {
  return choosePython(await candidates());
}

async function candidates(): Promise<Candidate[]> {
  const named = settings.python();
  if (named !== "") return [{ executable: expanded(named), origin: "setting neuron.python" }];
  const active = await activeInterpreter();
  return [
    ...(active ? [{ executable: active, origin: "Python extension" }] : []),
    ...workspaceEnvironments(),
    { executable: "python3", origin: "PATH" },
    { executable: "python", origin: "PATH" },
  ];
}

function expanded(path: string): string {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  return path.replaceAll("${workspaceFolder}", folder).replace(/^~(?=\/)/, process.env["HOME"] ?? "~");
}

async function activeInterpreter(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  if (!extension) return undefined;
  try {
    const { environments } = await extension.activate();
    if (!isWatching) environments.onDidChangeActiveEnvironmentPath?.(() => changed.fire());
    isWatching = true;
    const path = environments.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
    return (await environments.resolveEnvironment(path))?.executable.uri?.fsPath;
  } catch (error) {
    logError(error);
    return undefined;
  }
}

function workspaceEnvironments(): Candidate[] {
  return (vscode.workspace.workspaceFolders ?? [])
    .flatMap((folder) => [".venv", "venv"].map((name) => join(folder.uri.fsPath, name, "bin", "python")))
    .filter((executable) => existsSync(executable))
    .map((executable) => ({ executable, origin: "workspace" }));
}

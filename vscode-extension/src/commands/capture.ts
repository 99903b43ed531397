/** Captures a script: as a task in the terminal, with progress, then opens its profile. */

import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import * as vscode from "vscode";
import { findPython } from "../server/interpreters";
import { UntrustedError } from "../server/connection";
import { settings } from "../settings";
import { noticeText } from "../text/markdown";

export const TASK_TYPE = "neuron-profile";
export const PROBLEM_MATCHERS = ["$neuron-profile", "$neuron-profile-marked"];

/** A task of ours as tasks.json has it. */
export interface CaptureDefinition extends vscode.TaskDefinition {
  readonly script: string;
  readonly args?: readonly string[];
  readonly target?: string;
  readonly output?: string;
}

/** A profile's path that is free: `train.nprof`, `train-2.nprof`, ... beside the workspace's other files. */
export function freeOutput(script: string, folder: string, exists: (path: string) => boolean = existsSync): string {
  const name = basename(script).replace(/\.py$/, "");
  const path = (number: number): string => join(folder, `${name}${number === 1 ? "" : `-${number}`}.nprof`);
  let number = 1;
  while (exists(path(number))) number += 1;
  return path(number);
}

/** Arguments of Python for a capture. */
export function captureArguments(
  definition: CaptureDefinition,
  output: string,
  target: string,
  further: readonly string[],
): string[] {
  const options = ["-o", output, "--target", definition.target ?? target, ...further];
  return ["-m", "neuron_profile.cli", "capture", ...options, "--", "python", definition.script, ...(definition.args ?? [])];
}

/** A task that captures. */
export function captureTask(
  definition: CaptureDefinition,
  scope: vscode.WorkspaceFolder | vscode.TaskScope.Workspace,
  python: string,
  output: string,
): vscode.Task {
  const args = captureArguments(definition, output, settings.target(), settings.captureArguments());
  const cwd = typeof scope === "object" ? scope.uri.fsPath : dirname(definition.script);
  // The script's `python` must be the one that has Neuron Tools.
  const path = `${dirname(python)}:${process.env["PATH"] ?? ""}`;
  const execution = new vscode.ProcessExecution(python, args, { cwd, ...(python.includes("/") && { env: { PATH: path } }) });
  const name = `capture ${basename(definition.script)}`;
  const task = new vscode.Task(definition, scope, name, TASK_TYPE, execution, PROBLEM_MATCHERS);
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated, clear: true };
  return task;
}

/** Fills in tasks of tasks.json. */
export class CaptureTasks implements vscode.TaskProvider {
  provideTasks(): vscode.Task[] {
    return [];
  }

  async resolveTask(task: vscode.Task): Promise<vscode.Task> {
    const definition = task.definition as CaptureDefinition;
    const scope = typeof task.scope === "object" ? task.scope : vscode.TaskScope.Workspace;
    const folder = typeof scope === "object" ? scope.uri.fsPath : dirname(definition.script);
    const script = definition.script.replaceAll("${workspaceFolder}", folder);
    const output = definition.output ? join(folder, definition.output) : freeOutput(script, folder);
    const resolved = captureTask({ ...definition, script }, scope, await findPython(), output);
    resolved.definition = definition;
    return resolved;
  }
}

/**
 * Capture a script and wait for the end.
 *
 * @returns The profile's folder; undefined where none was written.
 * @throws UntrustedError, NoPythonError
 */
export async function capture(script: vscode.Uri, args: readonly string[]): Promise<string | undefined> {
  if (!vscode.workspace.isTrusted) {
    throw new UntrustedError("Capturing runs the script: trust the workspace first.");
  }
  const document = vscode.workspace.textDocuments.find(({ uri }) => uri.toString() === script.toString());
  if (document?.isDirty === true) await document.save();
  const folder = vscode.workspace.getWorkspaceFolder(script);
  const scope = folder ?? vscode.TaskScope.Workspace;
  const output = freeOutput(script.fsPath, folder?.uri.fsPath ?? dirname(script.fsPath));
  const definition: CaptureDefinition = { type: TASK_TYPE, script: script.fsPath, args: [...args] };
  const task = captureTask(definition, scope, await findPython(), output);
  const title = `Capturing ${noticeText(basename(script.fsPath))} on ${settings.target()} (simulated)`;
  await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title, cancellable: true },
    (_, cancellation) => runTask(task, cancellation),
  );
  return existsSync(join(output, "profile.json")) ? output : undefined;
}

/** Run a task and wait for its end. */
async function runTask(task: vscode.Task, cancellation: vscode.CancellationToken): Promise<number | undefined> {
  const execution = await vscode.tasks.executeTask(task);
  const cancelled = cancellation.onCancellationRequested(() => execution.terminate());
  try {
    return await new Promise((resolve) => {
      const subscriptions = [
        vscode.tasks.onDidEndTaskProcess((event) => {
          if (event.execution === execution) finish(event.exitCode);
        }),
        vscode.tasks.onDidEndTask((event) => {
          if (event.execution === execution) setTimeout(() => finish(undefined), 500);
        }),
      ];
      const finish = (status: number | undefined): void => {
        for (const subscription of subscriptions) subscription.dispose();
        resolve(status);
      };
    });
  } finally {
    cancelled.dispose();
  }
}

/** Arguments as a shell would split them: blanks part, quotes and backslashes keep together. */
export function splitArguments(text: string): string[] {
  const found: string[] = [];
  let current: string | undefined;
  let quote = "";
  for (let place = 0; place < text.length; place += 1) {
    const mark = text[place]!;
    if (quote !== "" && mark === quote) quote = "";
    else if (quote === "" && (mark === '"' || mark === "'")) {
      quote = mark;
      current ??= "";
    } else if (mark === "\\" && quote !== "'" && place + 1 < text.length) current = (current ?? "") + text[++place]!;
    else if (quote === "" && /\s/.test(mark)) {
      if (current !== undefined) found.push(current);
      current = undefined;
    } else current = (current ?? "") + mark;
  }
  return current === undefined ? found : [...found, current];
}

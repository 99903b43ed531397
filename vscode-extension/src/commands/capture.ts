/** Captures a script: as a task in the terminal, with progress, then opens its profile. */

import { existsSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import * as vscode from "vscode";
import { findPython } from "../server/interpreters";
import { UntrustedError } from "../server/connection";
import { settings } from "../settings";
import { isInside } from "../source/paths";
import { noticeText } from "../text/markdown";
import { captureArguments, freeOutput, type CaptureRequest } from "./command_line";

export const TASK_TYPE = "neuron-profile";
export const PROBLEM_MATCHERS = ["$neuron-profile", "$neuron-profile-marked"];

/** A task of ours as tasks.json has it. */
type CaptureDefinition = vscode.TaskDefinition & CaptureRequest;

/** A task that captures. */
export function captureTask(
  definition: CaptureDefinition,
  scope: vscode.WorkspaceFolder | vscode.TaskScope.Workspace,
  python: string,
  output: string,
): vscode.Task {
  const cwd = typeof scope === "object" ? scope.uri.fsPath : dirname(definition.script);
  const request = { ...definition, script: isInside(definition.script, cwd) ? relative(cwd, definition.script) : definition.script };
  // Profiles keep the command: `python train.py` says more than paths of this machine.
  const isNamedPython = python.includes("/") && existsSync(join(dirname(python), "python"));
  const path = `${dirname(python)}:${process.env["PATH"] ?? ""}`;
  const args = captureArguments(request, isNamedPython ? "python" : python, output, settings.target(), settings.captureArguments());
  const execution = new vscode.ProcessExecution(python, args, { cwd, ...(isNamedPython && { env: { PATH: path } }) });
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
 * Capture a script or notebook and wait for the end.
 *
 * @param cell Of a notebook: the code cell to record, from 1.
 * @returns The profile's folder; undefined where none was written.
 * @throws UntrustedError, NoPythonError
 */
export async function capture(script: vscode.Uri, args: readonly string[], cell?: number): Promise<string | undefined> {
  if (!vscode.workspace.isTrusted) {
    throw new UntrustedError("Capturing runs the script: trust the workspace first.");
  }
  const documents = [...vscode.workspace.textDocuments, ...vscode.workspace.notebookDocuments];
  const document = documents.find(({ uri }) => uri.toString() === script.toString());
  if (document?.isDirty === true) await document.save();
  const folder = vscode.workspace.getWorkspaceFolder(script);
  const scope = folder ?? vscode.TaskScope.Workspace;
  const output = freeOutput(script.fsPath, folder?.uri.fsPath ?? dirname(script.fsPath));
  const definition: CaptureDefinition = { type: TASK_TYPE, script: script.fsPath, args: [...args], ...(cell !== undefined && { cell }) };
  const task = captureTask(definition, scope, await findPython(), output);
  const what = cell === undefined ? "" : `cell ${cell} of `;
  const title = `Capturing ${what}${noticeText(basename(script.fsPath))} on ${settings.target()} (simulated)`;
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

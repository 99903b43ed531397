/** The output channel "Neuron Tools": made when the first line is written. */

import * as vscode from "vscode";

let channel: vscode.LogOutputChannel | undefined;

export function log(): vscode.LogOutputChannel {
  channel ??= vscode.window.createOutputChannel("Neuron Tools", { log: true });
  return channel;
}

/** Write down an error that the user need not be told of. */
export function logError(error: unknown): void {
  log().warn(messageOf(error));
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

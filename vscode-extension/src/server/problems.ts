/** Tells the user what went wrong, once, with what can be done about it. */

import * as vscode from "vscode";
import { log, messageOf } from "../log";
import { noticeText } from "../text/markdown";
import { EndpointError } from "./endpoint";
import { INSTALL_COMMAND, NoPythonError } from "./python";
import { UntrustedError } from "./connection";

interface Remedy {
  readonly title: string;
  readonly run: () => unknown;
}

const SELECT: Remedy = { title: "Select Interpreter", run: selectInterpreter };
const INSTALL: Remedy = { title: "Install", run: installInTerminal };
const TRUST: Remedy = { title: "Manage Trust", run: () => vscode.commands.executeCommand("workbench.trust.manage") };
const SETTING: Remedy = { title: "Open Setting", run: () => openSetting("neuron.endpoint") };
const LOG: Remedy = { title: "Show Log", run: () => log().show() };

const LONGEST_MESSAGE = 1000;
const shown = new Set<string>();

/** Show an error with its remedies; the same sentence not twice at once. */
export async function reportProblem(error: unknown): Promise<void> {
  const message = noticeText(messageOf(error), LONGEST_MESSAGE);
  log().error(messageOf(error));
  if (shown.has(message)) return;
  shown.add(message);
  const remedies = remediesOf(error);
  const chosen = await vscode.window.showErrorMessage(message, ...remedies.map(({ title }) => title));
  shown.delete(message);
  await remedies.find(({ title }) => title === chosen)?.run();
}

function remediesOf(error: unknown): Remedy[] {
  if (error instanceof NoPythonError) return [SELECT, INSTALL];
  if (error instanceof UntrustedError) return [TRUST];
  if (error instanceof EndpointError) return [SETTING];
  return [LOG];
}

/** Through the Python extension where it is there, else the setting. */
async function selectInterpreter(): Promise<void> {
  if (vscode.extensions.getExtension("ms-python.python")) {
    await vscode.commands.executeCommand("python.setInterpreter");
  } else {
    await openSetting("neuron.python");
  }
}

/** Write the command into a terminal; the user sends it. */
function installInTerminal(): void {
  const terminal = vscode.window.createTerminal("Neuron Tools");
  terminal.show();
  terminal.sendText(INSTALL_COMMAND, false);
}

/** Settings about this machine: in a window of another machine, they are among the settings of that one. */
async function openSetting(name: string): Promise<void> {
  const isRemote = vscode.env.remoteName !== undefined;
  await vscode.commands.executeCommand(
    isRemote ? "workbench.action.openRemoteSettings" : "workbench.action.openSettings",
    { query: name },
  );
}

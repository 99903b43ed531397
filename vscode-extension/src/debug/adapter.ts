/** The debugger of Python programs on the simulated device: debugpy, which runs them with `python -m neuron_tools`. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { UntrustedError } from "../server/connection";
import { findPython } from "../server/interpreters";
import { settings } from "../settings";
import { DEBUG_TYPE, deviceArguments, type LaunchSettings } from "./launch";

const PYTHON_DEBUGGER = "ms-python.debugpy";
const ANSWER_MS = 30_000;

/** debugpy is neither in the chosen Python nor in an extension. */
export class NoDebuggerError extends Error {
  override readonly name = "NoDebuggerError";
  constructor(python: string) {
    super(`Debugging needs the package debugpy: install it with "${python} -m pip install debugpy".`);
  }
}

export class DeviceDebugger implements vscode.DebugConfigurationProvider, vscode.DebugAdapterDescriptorFactory {
  provideDebugConfigurations(): vscode.DebugConfiguration[] {
    return [{ type: DEBUG_TYPE, request: "launch", name: "Current file on the simulated device", program: "${file}" }];
  }

  /** Without a launch.json, the current file is meant. */
  resolveDebugConfiguration(_: unknown, configuration: vscode.DebugConfiguration): vscode.DebugConfiguration {
    return configuration.type ? configuration : this.provideDebugConfigurations()[0]!;
  }

  /** As debugpy wants it: the program is started by ours, which brings the device. */
  resolveDebugConfigurationWithSubstitutedVariables(
    folder: vscode.WorkspaceFolder | undefined,
    configuration: vscode.DebugConfiguration,
  ): vscode.DebugConfiguration {
    const { program, ...rest } = configuration as vscode.DebugConfiguration & LaunchSettings;
    return {
      console: "integratedTerminal",
      cwd: folder?.uri.fsPath,
      subProcess: false, // nobody here would attach to them, and they would wait
      ...rest,
      module: "neuron_tools",
      args: deviceArguments({ ...rest, ...(program !== undefined && { program }) }, settings.target()),
    };
  }

  /** @throws UntrustedError, NoPythonError, NoDebuggerError */
  async createDebugAdapterDescriptor(): Promise<vscode.DebugAdapterDescriptor> {
    if (!vscode.workspace.isTrusted) throw new UntrustedError("Debugging runs the program: trust the workspace first.");
    const python = await findPython();
    const bundled = (await hasDebugger(python)) ? undefined : bundledDebugger();
    if (bundled === "") throw new NoDebuggerError(python);
    return new vscode.DebugAdapterExecutable(python, ["-m", "debugpy.adapter"], bundled ? { env: { PYTHONPATH: bundled } } : {});
  }
}

function hasDebugger(python: string): Promise<boolean> {
  const script = "import importlib.util, sys; sys.exit(importlib.util.find_spec('debugpy') is None)";
  return new Promise((resolve) => {
    execFile(python, ["-c", script], { timeout: ANSWER_MS }, (error) => resolve(error === null));
  });
}

/** The debugpy that Python's debugger extension brings; "" without it. */
function bundledDebugger(): string {
  const folder = vscode.extensions.getExtension(PYTHON_DEBUGGER)?.extensionPath;
  const libraries = folder === undefined ? "" : join(folder, "bundled", "libs");
  return existsSync(join(libraries, "debugpy")) ? libraries : "";
}

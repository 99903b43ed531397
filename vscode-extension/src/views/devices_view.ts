/** The view Devices: read with `neuron-ls`, kept live by `neuron-monitor` while it is visible. */

import { execFile, spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import * as vscode from "vscode";
import { log, logError } from "../log";
import { findPython } from "../server/interpreters";
import { shortened } from "../text/markdown";
import { bytes } from "../text/quantities";
import { readDevices, readUse, type CoreUse, type Device } from "./device_reports";

const LIST_MS = 3000;
const PERIOD = "1s";
const LONGEST_LIST = 16 << 20;

type Node = { readonly device: Device } | { readonly item: vscode.TreeItem };

export class DevicesView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private devices: readonly Device[] = [];
  private use = new Map<number, CoreUse>();
  private monitor: ChildProcess | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isVisible = false;

  constructor(private readonly folder: string) {}

  /** Watch while the view is visible, and not longer. */
  setVisible(isVisible: boolean): void {
    this.isVisible = isVisible;
    if (isVisible) this.poll().catch(logError);
    else this.stop();
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return "device" in node ? this.deviceItem(node.device) : node.item;
  }

  getChildren(node?: Node): Node[] {
    if (!node) return this.devices.map((device) => ({ device }));
    return "device" in node ? this.details(node.device) : [];
  }

  dispose(): void {
    this.stop();
    this.changed.dispose();
  }

  private async poll(): Promise<void> {
    clearTimeout(this.timer);
    if (!vscode.workspace.isTrusted) return;
    const python = await findPython();
    const printed = await run(python, ["-m", "neuron_monitor.ls_cli", "-j"], this.folder);
    this.devices = readDevices(printed);
    this.changed.fire();
    if (!this.isVisible) return;
    if (this.devices.length > 0) this.watch(python);
    this.timer = setTimeout(() => void this.poll().catch(logError), LIST_MS);
  }

  /** Start the monitor unless it runs. */
  private watch(python: string): void {
    if (this.monitor) return;
    const args = ["-m", "neuron_monitor.cli", "--period", PERIOD];
    const monitor = spawn(python, args, { cwd: this.folder, stdio: ["ignore", "pipe", "ignore"] });
    this.monitor = monitor;
    createInterface({ input: monitor.stdout }).on("line", (line) => {
      this.use = readUse(line) ?? this.use;
      this.changed.fire();
    });
    monitor.on("error", logError);
    monitor.on("close", () => {
      if (this.monitor === monitor) this.monitor = undefined;
      this.use = new Map();
    });
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.monitor?.kill("SIGTERM");
    this.monitor = undefined;
  }

  private deviceItem(device: Device): vscode.TreeItem {
    const isUsed = device.processes.length > 0;
    const { Expanded, Collapsed } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(`Device ${device.index}`, isUsed ? Expanded : Collapsed);
    const kind = device.isSimulated ? `${device.instance}, simulated` : device.instance;
    item.id = `device ${device.index}`;
    item.description = `${kind} · ${device.cores.length} cores · ${bytes(device.memoryBytes)}`;
    item.iconPath = new vscode.ThemeIcon(isUsed ? "vm-running" : "vm");
    return item;
  }

  private details(device: Device): Node[] {
    const busy = device.cores.filter((core) => this.use.has(core));
    const cores = busy.map((core) => {
      const use = this.use.get(core)!;
      return leaf(`NeuronCore ${core}`, `${use.percent.toFixed(0)} % · ${bytes(use.memoryBytes)}`, "circuit-board");
    });
    const processes = device.processes.map(({ pid, command }) => leaf(shortened(command, 120), `pid ${pid}`, "terminal"));
    return [...processes, ...cores];
  }
}

function leaf(label: string, description: string, icon: string): Node {
  const item = new vscode.TreeItem(label);
  item.description = description;
  item.iconPath = new vscode.ThemeIcon(icon);
  return { item };
}

/** Standard output of a program; empty where it fails, as `neuron-ls` does without devices. */
function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd, maxBuffer: LONGEST_LIST }, (error, printed, said) => {
      if (error) log().debug(said.trim());
      resolve(error ? "" : printed);
    });
  });
}

/** Stops a program in the debugger where a slow span starts: a breakpoint with its hit count, and the captured command. */

import { basename } from "node:path";
import * as vscode from "vscode";
import type { ProfileRef, ProfileRegistry } from "../profiles/registry";
import { readManifest } from "../profiles/registry";
import type { Stop } from "../server/answers";
import type { Connection } from "../server/connection";
import { UntrustedError } from "../server/connection";
import { isCell } from "../source/cells";
import type { DocumentCosts } from "../source/document_costs";
import { isInWorkspace, locate } from "../source/locate";
import { noticeText } from "../text/markdown";
import { stopText } from "../text/stop_text";
import type { Timelines } from "../timeline/timelines";
import { DEBUG_TYPE, moduleFiles, readCommand, startFolder, type LaunchSettings } from "./launch";

const SHOWN_MS = 15_000;

/** How to start the captured program, and in which folder of the workspace. */
interface Start {
  readonly folder: vscode.WorkspaceFolder;
  readonly settings: LaunchSettings & { readonly cwd: string };
}

export class Stopping implements vscode.Disposable {
  private breakpoint: vscode.SourceBreakpoint | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly registry: ProfileRegistry,
    private readonly costs: DocumentCosts,
    private readonly timelines: Timelines,
  ) {}

  /** Stop where the slowest execution of a line begins. */
  async atLine(uri: vscode.Uri, line: number): Promise<void> {
    const profile = this.registry.current;
    const costs = await this.costs.of(await vscode.workspace.openTextDocument(uri));
    const recorded = costs?.recorded(line);
    if (!profile || !costs || recorded === undefined) {
      tell("The chosen profile has nothing of this line.");
      return;
    }
    const id = await this.registry.idOf(profile);
    await this.stop(profile, await this.connection.ask((client) => client.stopAtLine(id, costs.path, recorded)));
  }

  /** Stop where the span begins that was clicked last in the timeline in front. */
  async atSpan(): Promise<void> {
    const { selected } = this.timelines;
    if (!selected) {
      tell("Click a span in the timeline first.");
      return;
    }
    const id = await this.registry.idOf(selected.profile);
    const stop = await this.connection.ask((client) => client.stopAtSpan(id, selected.track, selected.row));
    await this.stop(selected.profile, stop);
  }

  dispose(): void {
    if (this.breakpoint) vscode.debug.removeBreakpoints([this.breakpoint]);
  }

  private async stop(profile: ProfileRef, stop: Stop): Promise<void> {
    if (!vscode.workspace.isTrusted) throw new UntrustedError("Debugging runs the program: trust the workspace first.");
    const { file } = stop.place;
    if (isCell(file)) {
      tell("Cells are debugged in their notebook: the debugger here starts scripts and modules.");
      return;
    }
    const located = await locate(file);
    if (!located || located.isOutside) {
      tell(`${file} is not in this workspace.`);
      return;
    }
    const document = await vscode.workspace.openTextDocument(located.uri);
    const line = (await this.costs.of(document))?.place(stop.place.line);
    if (line === undefined) {
      tell(`Line ${stop.place.line} of ${basename(file)} is gone since the capture: capture it again first.`);
      return;
    }
    this.setBreakpoint(located.uri, line, stop.hit);
    const start = await this.startOf(profile, located.uri);
    if (!start) {
      tell("The breakpoint is set. How the profile was captured cannot be started in the debugger: start the program there yourself.");
      return;
    }
    vscode.window.setStatusBarMessage(stopText(stop, basename(file), line + 1), SHOWN_MS);
    const name = `${basename(file)}:${line + 1}`;
    await vscode.debug.startDebugging(start.folder, { type: DEBUG_TYPE, request: "launch", name, ...start.settings });
  }

  /** One breakpoint at a time is ours. */
  private setBreakpoint(uri: vscode.Uri, line: number, hit: number): void {
    if (this.breakpoint) vscode.debug.removeBreakpoints([this.breakpoint]);
    const place = new vscode.Location(uri, new vscode.Position(line, 0));
    const here = vscode.debug.breakpoints.filter(
      (each) => each instanceof vscode.SourceBreakpoint && isSamePlace(each.location, place),
    );
    vscode.debug.removeBreakpoints(here); // of two at a line, a debugger keeps either
    this.breakpoint = new vscode.SourceBreakpoint(place, true, undefined, hit > 1 ? hit.toString() : undefined);
    vscode.debug.addBreakpoints([this.breakpoint]);
  }

  /** How the profile's program starts here; undefined where its command is not that of a file of the workspace. */
  private async startOf(profile: ProfileRef, uri: vscode.Uri): Promise<Start | undefined> {
    const manifest = profile.remoteId === undefined ? await readManifest(profile) : undefined;
    const launch = manifest && readCommand(manifest.arguments);
    const folder = vscode.workspace.getWorkspaceFolder(uri);
    if (!launch || !folder) return undefined;
    const common = { args: launch.args, ...(manifest.target !== "" && { target: manifest.target }) };
    if (launch.module !== undefined) {
      const isHere = await anyExists(moduleFiles(launch.module).map((path) => vscode.Uri.joinPath(folder.uri, path)));
      return isHere ? { folder, settings: { ...common, module: launch.module, cwd: folder.uri.fsPath } } : undefined;
    }
    const script = await this.scriptOf(launch.script ?? "", uri);
    if (!script) return undefined;
    const cwd = startFolder(script.fsPath, launch.script ?? "", folder.uri.fsPath);
    return { folder, settings: { ...common, program: script.fsPath, cwd } };
  }

  /** The file that a command named, by the paths of the sources that the profile has. */
  private async scriptOf(script: string, uri: vscode.Uri): Promise<vscode.Uri | undefined> {
    const named = script.replace(/^(\.\/)+/, "");
    const { files } = await this.costs.data.sources();
    const recorded = files.map(({ path }) => path).find((path) => path === named || path.endsWith(`/${named}`));
    const found = await locate(recorded ?? named);
    if (found && !found.isOutside && isInWorkspace(found.uri)) return found.uri;
    return uri.path.endsWith(`/${named}`) ? uri : undefined;
  }
}

function isSamePlace(one: vscode.Location, other: vscode.Location): boolean {
  return one.uri.toString() === other.uri.toString() && one.range.start.line === other.range.start.line;
}

async function anyExists(uris: readonly vscode.Uri[]): Promise<boolean> {
  for (const uri of uris) {
    try {
      await vscode.workspace.fs.stat(uri);
      return true;
    } catch {
      continue; // the next one
    }
  }
  return false;
}

function tell(text: string): void {
  void vscode.window.showInformationMessage(noticeText(text));
}

/** The profiles of the workspace, and the one whose costs the editor shows. */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import * as vscode from "vscode";
import { logError } from "../log";
import type { Connection } from "../server/connection";

const PATTERN = "**/*.nprof/profile.json";
const MOST_FOUND = 500;
const LARGEST_MANIFEST = 4 << 20;
const CHOSEN_KEY = "neuron.profile";
const BASE_KEY = "neuron.base";
const TAGS_KEY = "neuron.tags";

/** A profile that can be opened. */
export interface ProfileRef {
  /** Its folder on this machine; of a profile of a remote server, its location there. */
  readonly path: string;
  readonly name: string;
  /** Id at the remote server; undefined for a folder of this machine. */
  readonly remoteId: string | undefined;
}

/** A range of time in ns from a profile's start. */
export interface TimeRange {
  readonly startNs: number;
  readonly endNs: number;
}

/** What its `profile.json` says, as far as it is shown in lists. */
export interface Manifest {
  readonly command: string;
  /** The command's words; none where it is kept as one text. */
  readonly arguments: readonly string[];
  readonly target: string;
  readonly isComplete: boolean;
  readonly modified: number;
}

export class ProfileRegistry implements vscode.Disposable {
  private chosen: ProfileRef | undefined;
  private comparedWith: ProfileRef | undefined;
  private chosenRange: TimeRange | undefined;
  private readonly rangeChanged = new vscode.EventEmitter<void>();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly listChanged = new vscode.EventEmitter<void>();
  private readonly watcher = vscode.workspace.createFileSystemWatcher(PATTERN);
  /** Another profile was chosen, here or as base, or the chosen one was written again. */
  readonly onDidChange = this.changed.event;
  /** Another range of the chosen profile was chosen, or all of it. */
  readonly onDidChangeRange = this.rangeChanged.event;
  /** Profiles came, went or got tags. */
  readonly onDidChangeList = this.listChanged.event;

  constructor(
    private readonly connection: Connection,
    private readonly memory: vscode.Memento,
  ) {
    this.chosen = memory.get<ProfileRef>(CHOSEN_KEY);
    this.comparedWith = memory.get<ProfileRef>(BASE_KEY);
    this.tell();
    this.watcher.onDidCreate(() => this.listChanged.fire());
    this.watcher.onDidDelete((uri) => void this.deleted(uri).catch(logError));
    this.watcher.onDidChange((uri) => {
      this.listChanged.fire();
      if ([this.chosen?.path, this.comparedWith?.path].includes(dirname(uri.fsPath))) this.changed.fire();
    });
    connection.onDidRestart(() => this.changed.fire());
  }

  /** The profile whose costs the editor shows. */
  get current(): ProfileRef | undefined {
    return this.chosen;
  }

  /** The profile that the chosen one's lines are compared with; undefined where they are not. */
  get base(): ProfileRef | undefined {
    return this.comparedWith && !isSame(this.comparedWith, this.chosen) ? this.comparedWith : undefined;
  }

  /** Compare the lines of the chosen profile with those of another, or no longer. */
  async compareWith(base: ProfileRef | undefined): Promise<void> {
    this.comparedWith = base;
    this.tell();
    this.changed.fire();
    await this.memory.update(BASE_KEY, base);
  }

  /** The part of the chosen profile whose costs the editor shows; undefined for all of it. */
  get range(): TimeRange | undefined {
    return this.chosenRange;
  }

  /** Show the costs of a range of the chosen profile; of another profile's timeline it is nothing to the editor. */
  chooseRange(profile: ProfileRef, range: TimeRange | undefined): void {
    if (!isSame(profile, this.chosen)) return;
    if (range?.startNs === this.chosenRange?.startNs && range?.endNs === this.chosenRange?.endNs) return;
    this.chosenRange = range;
    this.rangeChanged.fire();
  }

  async choose(profile: ProfileRef | undefined): Promise<void> {
    if (isSame(profile, this.chosen)) return;
    this.chosen = profile;
    this.chosenRange = undefined;
    this.tell();
    this.changed.fire();
    this.listChanged.fire();
    await this.memory.update(CHOSEN_KEY, profile);
  }

  /** The id of a profile at the server, which takes it in where it is local. */
  async idOf(profile: ProfileRef): Promise<string> {
    return profile.remoteId ?? this.connection.add(profile.path);
  }

  /** Profiles of the workspace, newest first; of a remote server, as it lists them. */
  async list(): Promise<ProfileRef[]> {
    if (this.connection.isRemote) {
      const entries = await this.connection.ask((client) => client.profiles());
      return entries.map(({ id, name, location }) => ({ path: location, name, remoteId: id }));
    }
    const found = await vscode.workspace.findFiles(PATTERN, "**/{node_modules,.venv,.git}/**", MOST_FOUND);
    const dated = await Promise.all(found.map(async (uri) => ({ uri, time: await modified(uri) })));
    return dated.sort((one, other) => other.time - one.time).map(({ uri }) => profileAt(uri));
  }

  tags(profile: ProfileRef): readonly string[] {
    return this.memory.get<Record<string, string[]>>(TAGS_KEY, {})[profile.path] ?? [];
  }

  async tag(profile: ProfileRef, tags: readonly string[]): Promise<void> {
    const all = this.memory.get<Record<string, readonly string[]>>(TAGS_KEY, {});
    await this.memory.update(TAGS_KEY, { ...all, [profile.path]: tags });
    this.listChanged.fire();
  }

  refresh(): void {
    this.listChanged.fire();
  }

  dispose(): void {
    this.watcher.dispose();
    this.changed.dispose();
    this.rangeChanged.dispose();
    this.listChanged.dispose();
  }

  private async deleted(uri: vscode.Uri): Promise<void> {
    this.listChanged.fire();
    // A file that was written anew by renaming is told as deleted too.
    if (existsSync(uri.fsPath)) return;
    if (dirname(uri.fsPath) === this.comparedWith?.path) await this.compareWith(undefined);
    if (dirname(uri.fsPath) === this.chosen?.path) await this.choose(undefined);
  }

  private tell(): void {
    void vscode.commands.executeCommand("setContext", "neuron.hasProfile", this.chosen !== undefined);
    void vscode.commands.executeCommand("setContext", "neuron.comparesLines", this.base !== undefined);
  }
}

function isSame(one: ProfileRef | undefined, other: ProfileRef | undefined): boolean {
  return one?.path === other?.path && one?.remoteId === other?.remoteId;
}

/** The profile of a `profile.json`, or of its folder. */
export function profileAt(uri: vscode.Uri): ProfileRef {
  const path = basename(uri.fsPath) === "profile.json" ? dirname(uri.fsPath) : uri.fsPath;
  return { path, name: basename(path), remoteId: undefined };
}

/** Read what a list shows of a profile; undefined where it cannot be read. */
export async function readManifest(profile: ProfileRef): Promise<Manifest | undefined> {
  const uri = vscode.Uri.joinPath(vscode.Uri.file(profile.path), "profile.json");
  try {
    const status = await vscode.workspace.fs.stat(uri);
    if (status.size > LARGEST_MANIFEST) return undefined;
    const said = JSON.parse(await readFile(uri.fsPath, "utf8")) as Record<string, unknown>;
    const words = Array.isArray(said["command"]) ? said["command"].map(String) : [];
    return {
      command: words.length > 0 ? words.join(" ") : text(said["command"]),
      arguments: words,
      target: text(said["target"]),
      isComplete: said["complete"] !== false,
      modified: status.mtime,
    };
  } catch {
    return undefined;
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

async function modified(uri: vscode.Uri): Promise<number> {
  try {
    return (await vscode.workspace.fs.stat(uri)).mtime;
  } catch {
    return 0;
  }
}

/** What the editor shows of the chosen profile, asked once and kept until the profile changes. */

import * as vscode from "vscode";
import type { FileCosts, Finding, Hierarchy, SourceText, Sources } from "../server/answers";
import type { Client } from "../server/client";
import type { Connection } from "../server/connection";
import type { ProfileRef, ProfileRegistry } from "./registry";

/** The chosen profile, or the one that it is compared with. */
export type Which = "chosen" | "base";

const LINES = "chosen lines ";

export class ProfileData implements vscode.Disposable {
  private readonly kept = new Map<string, Promise<unknown>>();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly found = new vscode.EventEmitter<void>();
  private readonly subscriptions: vscode.Disposable[];
  /** The findings are there, because somebody wanted them. */
  readonly onDidFind = this.found.event;
  /** What was asked before is no longer true. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly connection: Connection,
    readonly registry: ProfileRegistry,
  ) {
    const forget = (): void => {
      this.kept.clear();
      this.changed.fire();
    };
    this.subscriptions = [
      registry.onDidChange(forget),
      registry.onDidChangeRange(() => {
        for (const key of [...this.kept.keys()].filter((known) => known.startsWith(LINES))) this.kept.delete(key);
        this.changed.fire();
      }),
      vscode.workspace.onDidChangeWorkspaceFolders(forget),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("neuron.ownCode") || event.affectsConfiguration("neuron.pathMappings")) forget();
      }),
    ];
  }

  sources(which: Which = "chosen"): Promise<Sources> {
    return this.keep("sources", (client, id) => client.sources(id), which);
  }

  source(path: string, which: Which = "chosen"): Promise<SourceText> {
    return this.keep(`source ${path}`, (client, id) => client.source(id, path), which);
  }

  lines(path: string, which: Which = "chosen"): Promise<FileCosts> {
    const range = which === "chosen" ? this.registry.range : undefined;
    return this.keep(`lines ${path}`, (client, id) => client.lines(id, path, range), which);
  }

  findings(): Promise<readonly Finding[]> {
    if (!this.hasFindings) void this.tellOfFindings();
    return this.keep("findings", (client, id) => client.findings(id));
  }

  /** Whether the findings were asked for. */
  get hasFindings(): boolean {
    return this.kept.has("chosen findings");
  }

  hierarchy(): Promise<Hierarchy> {
    return this.keep("hierarchy", (client, id) => client.hierarchy(id));
  }

  private async tellOfFindings(): Promise<void> {
    await Promise.resolve(); // until they are kept
    await this.findings().then(
      () => this.found.fire(),
      () => undefined,
    );
  }

  dispose(): void {
    for (const part of [...this.subscriptions, this.found, this.changed]) part.dispose();
  }

  /** @throws As `Connection.ask`; an error is not kept. */
  private keep<T>(
    what: string,
    question: (client: Client, id: string) => Promise<T>,
    which: Which = "chosen",
  ): Promise<T> {
    const key = `${which} ${what}`;
    const known = this.kept.get(key) as Promise<T> | undefined;
    if (known) return known;
    const answer = this.ask(which === "base" ? this.registry.base : this.registry.current, question);
    this.kept.set(key, answer);
    answer.catch(() => {
      if (this.kept.get(key) === answer) this.kept.delete(key);
    });
    return answer;
  }

  private async ask<T>(
    profile: ProfileRef | undefined,
    question: (client: Client, id: string) => Promise<T>,
  ): Promise<T> {
    if (!profile) throw new Error("No profile is chosen.");
    const id = await this.registry.idOf(profile);
    return this.connection.ask((client) => question(client, id));
  }
}

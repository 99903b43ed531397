/** The window's connection to an Explorer: started when something is first asked, and again when it was killed. */

import * as vscode from "vscode";
import { log, logError } from "../log";
import { ownFolders, settings } from "../settings";
import { Client, UnreachableError } from "./client";
import { parseEndpoint, type Endpoint } from "./endpoint";
import { findPython, onDidChangeInterpreter } from "./interpreters";
import { startServer, type ServerProcess } from "./process";

/** The workspace must be trusted before its Python may run. */
export class UntrustedError extends Error {
  override readonly name = "UntrustedError";
}

/** Settings that say which server is meant. */
const PLACES = ["neuron.endpoint", "neuron.python"];
const MOST_ATTEMPTS = 3;

export class Connection implements vscode.Disposable {
  private current: Client | undefined;
  private starting: Promise<Client> | undefined;
  private server: ServerProcess | undefined;
  private disposed = false;
  /** Counts what makes a server that is starting the wrong one. */
  private round = 0;
  /** The last attempt failed, for a reason that the user may mend. */
  private failed = false;
  /** The server went by itself: what was asked of it must be asked again of the next. */
  private wasLost = false;
  private readonly subscriptions: vscode.Disposable[];
  /** Profiles that a restarted server must be told of. */
  private readonly added = new Set<string>();
  private readonly restarted = new vscode.EventEmitter<void>();
  /** The server is another one than before. */
  readonly onDidRestart = this.restarted.event;

  /** @param folder Where the server starts; nothing of the workspace is imported from there. */
  constructor(private readonly folder: string) {
    this.subscriptions = [
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (PLACES.some((name) => event.affectsConfiguration(name))) this.again();
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.again()),
      onDidChangeInterpreter(() => this.again()),
    ];
  }

  /** Whether the server is the user's own, so that paths are those of another machine perhaps. */
  get isRemote(): boolean {
    return settings.endpoint() !== "";
  }

  get isStarted(): boolean {
    return this.current !== undefined || this.starting !== undefined;
  }

  /** The process id of the server that was started here. */
  get pid(): number | undefined {
    return this.server?.pid;
  }

  async endpoint(): Promise<Endpoint> {
    return (await this.connected()).endpoint;
  }

  /** Id of the profile in a folder of this machine, which the server takes in. */
  async add(path: string): Promise<string> {
    const { id } = await this.ask((client) => client.add(path));
    this.added.add(path);
    return id;
  }

  /**
   * Ask the server; one that is gone is started again, and one that broke off is asked again.
   *
   * @throws RefusedError, UnreachableError, SlowError, NoPythonError, ServerStartError, EndpointError, UntrustedError
   */
  async ask<T>(question: (client: Client) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const client = await this.connected();
      try {
        return await question(client);
      } catch (error) {
        const isLast = attempt === MOST_ATTEMPTS || this.isRemote || this.disposed;
        if (!(error instanceof UnreachableError) || isLast) throw error;
        if (error.isGone) this.forget(client);
      }
    }
  }

  /** Stop the server; the next question starts another. */
  async restart(): Promise<void> {
    this.stop();
    this.restarted.fire();
    await this.connected();
  }

  dispose(): void {
    this.disposed = true;
    this.stop();
    for (const part of [...this.subscriptions, this.restarted]) part.dispose();
  }

  /** What decides on the server has changed: whoever asked before asks again. */
  private again(): void {
    if (!this.isStarted && !this.failed) return;
    this.stop();
    this.restarted.fire();
  }

  private async connected(): Promise<Client> {
    if (this.current) return this.current;
    if (!this.starting) {
      const starting = this.newest();
      this.starting = starting;
      starting.then(
        () => this.started(starting, false),
        () => this.started(starting, true),
      );
    }
    return this.starting;
  }

  private started(starting: Promise<Client>, hasFailed: boolean): void {
    if (this.starting !== starting) return;
    this.starting = undefined;
    this.failed = hasFailed;
  }

  /** A connection that was overtaken by another setting while it was made is made again. */
  private async newest(): Promise<Client> {
    const { round } = this;
    try {
      const client = await this.connect(round);
      if (client) return client;
    } catch (error) {
      if (this.isWanted(round) || this.disposed) throw error;
    }
    return this.connected();
  }

  /** Undefined where another one is wanted by now. */
  private async connect(round: number): Promise<Client | undefined> {
    if (this.disposed) throw new UnreachableError("The window is closing.");
    if (this.isRemote) return (this.current = new Client(parseEndpoint(settings.endpoint()), ownFolders));
    if (!vscode.workspace.isTrusted) {
      throw new UntrustedError("Reading a profile runs the workspace's Python: trust the workspace first.");
    }
    const python = await findPython();
    log().info(`Starting the Explorer with ${python}.`);
    const server = await startServer([python, "-m", "neuron_explorer.api.serve"], this.folder, (line) => log().info(line));
    const client = new Client(server.endpoint, ownFolders);
    log().info(`The Explorer listens at ${server.endpoint.baseUrl} (process ${server.pid}).`);
    for (const path of this.added) await client.add(path).catch(logError);
    if (this.isWanted(round)) return this.keep(server, client);
    server.stop();
    return undefined;
  }

  private isWanted(round: number): boolean {
    return round === this.round && !this.disposed;
  }

  private keep(server: ServerProcess, client: Client): Client {
    const isAnother = this.wasLost;
    this.wasLost = false;
    this.server = server;
    this.current = client;
    void server.ended.then(() => this.lost(server, client));
    if (isAnother) this.restarted.fire();
    return client;
  }

  /** A server that ended by itself is replaced at once where profiles are open. */
  private lost(server: ServerProcess, client: Client): void {
    if (this.server !== server || this.disposed) return;
    log().warn(`The Explorer (process ${server.pid}) ended.`);
    this.forget(client);
    if (this.added.size > 0) this.connected().catch((error: unknown) => log().error(String(error)));
  }

  private forget(client: Client): void {
    if (this.current !== client) return;
    this.stop();
    this.wasLost = true;
  }

  private stop(): void {
    const server = this.server;
    this.round += 1;
    this.wasLost = false;
    this.starting = undefined;
    this.current = undefined;
    this.server = undefined;
    server?.stop();
  }
}

/** The window's connection to an Explorer: started when something is first asked, and again when it was killed. */

import * as vscode from "vscode";
import { log, logError } from "../log";
import { settings } from "../settings";
import { Client, UnreachableError } from "./client";
import { parseEndpoint, type Endpoint } from "./endpoint";
import { findPython } from "./interpreters";
import { startServer, type ServerProcess } from "./process";

/** The workspace must be trusted before its Python may run. */
export class UntrustedError extends Error {
  override readonly name = "UntrustedError";
}

export class Connection implements vscode.Disposable {
  private current: Client | undefined;
  private starting: Promise<Client> | undefined;
  private server: ServerProcess | undefined;
  private disposed = false;
  /** Profiles that a restarted server must be told of. */
  private readonly added = new Set<string>();
  private readonly restarted = new vscode.EventEmitter<void>();
  /** The server is another one than before. */
  readonly onDidRestart = this.restarted.event;

  /** @param folder Where the server starts; nothing of the workspace is imported from there. */
  constructor(private readonly folder: string) {}

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
   * Ask the server; one that is gone is started again, once.
   *
   * @throws RefusedError, UnreachableError, NoPythonError, ServerStartError, EndpointError, UntrustedError
   */
  async ask<T>(question: (client: Client) => Promise<T>): Promise<T> {
    const client = await this.connected();
    try {
      return await question(client);
    } catch (error) {
      if (!(error instanceof UnreachableError) || this.isRemote || this.disposed) throw error;
      this.forget(client);
      return question(await this.connected());
    }
  }

  /** Stop the server; the next question starts another. */
  async restart(): Promise<void> {
    this.stop();
    await this.connected();
    this.restarted.fire();
  }

  dispose(): void {
    this.disposed = true;
    this.stop();
    this.restarted.dispose();
  }

  private async connected(): Promise<Client> {
    if (this.current) return this.current;
    this.starting ??= this.connect().finally(() => (this.starting = undefined));
    return this.starting;
  }

  private async connect(): Promise<Client> {
    if (this.disposed) throw new UnreachableError("The window is closing.");
    if (this.isRemote) return (this.current = new Client(parseEndpoint(settings.endpoint())));
    if (!vscode.workspace.isTrusted) {
      throw new UntrustedError("Reading a profile runs the workspace's Python: trust the workspace first.");
    }
    const python = await findPython();
    log().info(`Starting the Explorer with ${python}.`);
    const server = await startServer([python, "-m", "neuron_explorer.api.serve"], this.folder, (line) => log().info(line));
    const client = new Client(server.endpoint);
    log().info(`The Explorer listens at ${server.endpoint.baseUrl} (process ${server.pid}).`);
    return this.keep(server, client);
  }

  private async keep(server: ServerProcess, client: Client): Promise<Client> {
    if (this.disposed) {
      server.stop();
      throw new UnreachableError("The window is closing.");
    }
    this.server = server;
    void server.ended.then(() => this.lost(server, client));
    for (const path of this.added) await client.add(path).catch(logError);
    this.current = client;
    return client;
  }

  /** A server that ended by itself is replaced at once where profiles are open. */
  private lost(server: ServerProcess, client: Client): void {
    if (this.server !== server || this.disposed) return;
    log().warn(`The Explorer (process ${server.pid}) ended.`);
    this.forget(client);
    if (this.added.size === 0) return;
    this.connected().then(
      () => this.restarted.fire(),
      (error: unknown) => log().error(String(error)),
    );
  }

  private forget(client: Client): void {
    if (this.current === client) this.stop();
  }

  private stop(): void {
    const server = this.server;
    this.current = undefined;
    this.server = undefined;
    server?.stop();
  }
}

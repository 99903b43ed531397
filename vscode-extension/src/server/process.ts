/** One Explorer as a child process: it listens on the loopback interface and ends with its standard input. */

import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { parseReadyLine, type Endpoint } from "./endpoint";

const START_MS = 60_000;
const KEPT_ERROR_LINES = 20;

/** The server did not start; the message says why. */
export class ServerStartError extends Error {
  override readonly name = "ServerStartError";
}

export interface ServerProcess {
  readonly endpoint: Endpoint;
  readonly pid: number;
  /** Resolves when the process has ended, whoever ended it. */
  readonly ended: Promise<void>;
  stop(): void;
}

/**
 * Start a server and wait until it listens.
 *
 * @param say Takes its lines of standard error.
 * @throws ServerStartError It ended, or took too long.
 */
export async function startServer(
  command: readonly string[],
  cwd: string,
  say: (line: string) => void,
): Promise<ServerProcess> {
  const [program = "", ...args] = command;
  const child = spawn(program, args, { cwd, stdio: ["pipe", "pipe", "pipe"] });
  const ended = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
    child.once("error", () => resolve());
  });
  const errors = readErrors(child, say);
  try {
    const endpoint = await Promise.race([readyEndpoint(child), failure(child, errors), expiry()]);
    return { endpoint, pid: child.pid ?? 0, ended, stop: () => stop(child) };
  } catch (error) {
    stop(child);
    throw error;
  }
}

function readErrors(child: ChildProcess, say: (line: string) => void): string[] {
  const last: string[] = [];
  if (child.stderr) {
    createInterface({ input: child.stderr }).on("line", (line) => {
      say(line);
      last.push(line);
      if (last.length > KEPT_ERROR_LINES) last.shift();
    });
  }
  return last;
}

function readyEndpoint(child: ChildProcess): Promise<Endpoint> {
  return new Promise((resolve) => {
    if (!child.stdout) return;
    createInterface({ input: child.stdout }).on("line", (line) => {
      const endpoint = parseReadyLine(line);
      if (endpoint) resolve(endpoint);
    });
  });
}

function failure(child: ChildProcess, errors: readonly string[]): Promise<never> {
  return new Promise((_, reject) => {
    child.once("error", (error) => reject(new ServerStartError(`The server did not start: ${error.message}.`)));
    child.once("close", (code) => {
      const reason = errors.findLast((line) => line.trim() !== "") ?? `exit status ${code ?? "unknown"}`;
      reject(new ServerStartError(`The server did not start: ${reason}`));
    });
  });
}

function expiry(): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new ServerStartError("The server did not start within a minute.")), START_MS).unref();
  });
}

/** Closing its input ends the server; the signal is for one that hangs. */
function stop(child: ChildProcess): void {
  child.stdin?.end();
  child.kill("SIGTERM");
}

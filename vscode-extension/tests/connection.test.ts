import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SlowError, UnreachableError } from "../src/server/client";
import { Connection } from "../src/server/connection";
import { NoPythonError } from "../src/server/python";
import type { ServerProcess } from "../src/server/process";
import { configuration, EventEmitter } from "./vscode_stub";

const started: Server[] = [];
const python = vi.fn(() => Promise.resolve("python"));

/** A server that only lives and ends. */
class Server implements ServerProcess {
  private end: () => void = () => undefined;
  readonly ended = new Promise<void>((resolve) => (this.end = resolve));
  readonly pid = started.length + 1;
  readonly endpoint = { baseUrl: `http://127.0.0.1:${this.pid}`, token: "t" };
  isStopped = false;
  stop(): void {
    this.isStopped = true;
    this.end();
  }
  die(): void {
    this.end();
  }
}

const interpreterChanged = new EventEmitter<void>();
vi.mock("../src/server/interpreters", () => ({
  findPython: () => python(),
  onDidChangeInterpreter: (listener: () => void) => interpreterChanged.event(listener),
}));
vi.mock("../src/server/process", () => ({
  startServer: () => {
    const server = new Server();
    started.push(server);
    return Promise.resolve(server);
  },
}));

describe("Connection", () => {
  let connection: Connection;
  let restarts: number;

  beforeEach(() => {
    started.length = 0;
    configuration.values.clear();
    python.mockReset();
    python.mockImplementation(() => Promise.resolve("python"));
    connection = new Connection("/");
    restarts = 0;
    connection.onDidRestart(() => (restarts += 1));
  });

  afterEach(() => connection.dispose());

  const baseUrl = (): Promise<string> => connection.ask((client) => Promise.resolve(client.endpoint.baseUrl));

  it("starts one server for all who ask", async () => {
    expect(connection.isStarted).toBe(false);
    expect(new Set(await Promise.all([baseUrl(), baseUrl(), baseUrl()])).size).toBe(1);
    expect(started).toHaveLength(1);
  });

  it("starts another when nobody listens any more, and tells of it", async () => {
    await baseUrl();
    let asked = 0;
    const answer = await connection.ask((client) => {
      asked += 1;
      return asked === 1 ? Promise.reject(new UnreachableError("gone")) : Promise.resolve(client.endpoint.baseUrl);
    });
    expect(answer).toBe("http://127.0.0.1:2");
    expect([started.length, started[0]?.isStopped, restarts]).toEqual([2, true, 1]);
  });

  it("asks the same one again when a connection broke off", async () => {
    await baseUrl();
    let asked = 0;
    await connection.ask(() => (++asked === 1 ? Promise.reject(new UnreachableError("broke", false)) : Promise.resolve()));
    expect([asked, started.length, restarts]).toEqual([2, 1, 0]);
  });

  it("lets a server live that is slow", async () => {
    await expect(connection.ask(() => Promise.reject(new SlowError("slow")))).rejects.toThrow(SlowError);
    expect(started[0]?.isStopped).toBe(false);
  });

  it("gives up when it is in vain", async () => {
    await expect(connection.ask(() => Promise.reject(new UnreachableError("gone")))).rejects.toThrow("gone");
    expect(started).toHaveLength(3);
  });

  it("starts another when the setting names another Python, also while one starts", async () => {
    await baseUrl();
    configuration.set("neuron.python", "/other");
    expect([started[0]?.isStopped, restarts]).toEqual([true, 1]);
    const asked = baseUrl();
    configuration.set("neuron.python", "/third");
    expect(await asked).toBe("http://127.0.0.1:3");
    expect(started.map((server) => server.isStopped)).toEqual([true, true, false]);
  });

  it("starts another when the setting changes while it is told of the profiles", async () => {
    const told = vi.fn(() => Promise.resolve(Response.json({ id: "p" })));
    vi.stubGlobal("fetch", told);
    await connection.add("/a.nprof");
    configuration.set("neuron.python", "/other");
    told.mockImplementationOnce(() => {
      configuration.set("neuron.python", "/third");
      return Promise.resolve(Response.json({ id: "p" }));
    });
    expect(await baseUrl()).toBe("http://127.0.0.1:3");
    expect(started.map((server) => server.isStopped)).toEqual([true, true, false]);
    vi.unstubAllGlobals();
  });

  it("lets everybody ask again once a missing Python is there", async () => {
    python.mockImplementationOnce(() => Promise.reject(new NoPythonError("none")));
    await expect(baseUrl()).rejects.toThrow(NoPythonError);
    configuration.set("neuron.python", "/found");
    expect(restarts).toBe(1);
    expect(await baseUrl()).toBe("http://127.0.0.1:1");
  });

  it("follows the interpreter of the Python extension", async () => {
    await baseUrl();
    interpreterChanged.fire();
    expect([started[0]?.isStopped, restarts]).toEqual([true, 1]);
    expect(await baseUrl()).toBe("http://127.0.0.1:2");
  });

  it("starts nothing because of a setting before something was asked", () => {
    configuration.set("neuron.python", "/other");
    expect([restarts, started.length]).toEqual([0, 0]);
  });

  it("stops its server with the window, also one that is starting", async () => {
    const asked = baseUrl();
    connection.dispose();
    await expect(asked).rejects.toThrow(UnreachableError);
    await baseUrl().catch(() => undefined);
    expect(started.every((server) => server.isStopped)).toBe(true);
  });
});

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Client, RefusedError, UnreachableError } from "../src/server/client";

let server: Server;
let client: Client;
const seen: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    seen.push(`${request.method ?? ""} ${request.url ?? ""} ${request.headers.authorization ?? ""}`);
    if (request.url?.includes("lines")) response.writeHead(404).end(JSON.stringify({ error: "There is no such file." }));
    else if (request.url?.includes("findings")) response.writeHead(400, { "content-type": "text/plain" }).end("One sentence.\n");
    else if (request.url?.includes("hierarchy")) response.writeHead(302, { location: "http://evil.example/" }).end();
    else response.end("[]");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  client = new Client({ baseUrl: `http://127.0.0.1:${port}`, token: "secret" });
});
afterAll(() => server.close());

describe("Client", () => {
  it("sends the token in a header, never in the address", async () => {
    expect(await client.profiles()).toEqual([]);
    expect(seen.at(-1)).toBe("GET /api/editor/profiles Bearer secret");
  });

  it("encodes what it asks for", async () => {
    await client.source("ab12", "/p/a b&c.py");
    expect(seen.at(-1)).toContain("source?path=%2Fp%2Fa+b%26c.py ");
  });

  it("passes on the server's sentences", async () => {
    await expect(client.lines("ab12", "/p")).rejects.toThrow(new RefusedError("There is no such file.", 404));
    await expect(client.findings("ab12")).rejects.toThrow("One sentence.");
  });

  it("follows no redirection with the token", async () =>
    expect(client.hierarchy("ab12")).rejects.toThrow(UnreachableError));

  it("tells that nobody answers", async () => {
    const gone = new Client({ baseUrl: "http://127.0.0.1:1", token: "t" });
    await expect(gone.profiles()).rejects.toThrow(UnreachableError);
  });

  it("can be cancelled", async () => {
    const controller = new AbortController();
    controller.abort();
    await expect(client.timeline("ab12", "tracks", {}, controller.signal)).rejects.toThrow(/abort/i);
  });
});

import { describe, expect, it } from "vitest";
import { ServerStartError, startServer } from "../src/server/process";

const node = (script: string): string[] => [process.execPath, "-e", script];
const READY = `console.log(JSON.stringify({ url: "http://127.0.0.1:9/", token: "t" }));`;

describe("startServer", () => {
  it("is ready when the address is printed, and ends with its input", async () => {
    const server = await startServer(node(`console.log("noise"); ${READY} process.stdin.resume();`), "/", () => undefined);
    expect(server.endpoint).toEqual({ baseUrl: "http://127.0.0.1:9", token: "t" });
    server.stop();
    await server.ended;
  });

  it("says why one did not start", async () => {
    const lines: string[] = [];
    const starting = startServer(node(`console.error("ImportError: no module"); process.exit(1);`), "/", (line) => lines.push(line));
    await expect(starting).rejects.toThrow(new ServerStartError("The server did not start: ImportError: no module"));
    expect(lines).toEqual(["ImportError: no module"]);
  });

  it("says that a program is not there", async () =>
    expect(startServer(["/no/such/program"], "/", () => undefined)).rejects.toThrow(ServerStartError));
});

import { describe, expect, it } from "vitest";
import type { FromWebview } from "../src/timeline/messages";
import { HostSource } from "./source";

function pair(): { sent: FromWebview[]; source: HostSource } {
  const sent: FromWebview[] = [];
  return { sent, source: new HostSource((message) => sent.push(message)) };
}

describe("HostSource", () => {
  it("gives each answer to its request", async () => {
    const { sent, source } = pair();
    const { signal } = new AbortController();
    const [one, other] = [source.request("tracks", {}, signal), source.request("names", {}, signal)];
    expect(sent.map((message) => message.type === "request" && message.id)).toEqual([1, 2]);
    source.receive({ type: "answer", id: 2, bytes: new ArrayBuffer(2) });
    source.receive({ type: "answer", id: 1, bytes: new ArrayBuffer(1) });
    expect([(await one).byteLength, (await other).byteLength]).toEqual([1, 2]);
  });

  it("rejects with the host's sentence", async () => {
    const { source } = pair();
    const asked = source.request("tracks", {}, new AbortController().signal);
    source.receive({ type: "refusal", id: 1, message: "No." });
    await expect(asked).rejects.toThrow("No.");
  });

  it("tells the host what is no longer wanted", async () => {
    const { sent, source } = pair();
    const controller = new AbortController();
    const asked = source.request("timeline", {}, controller.signal);
    controller.abort();
    await expect(asked).rejects.toMatchObject({ name: "AbortError" });
    expect(sent.at(-1)).toEqual({ type: "cancel", id: 1 });
    source.receive({ type: "answer", id: 1, bytes: new ArrayBuffer(0) });
  });
});

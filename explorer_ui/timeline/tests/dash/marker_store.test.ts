import { afterEach, expect, it, vi } from "vitest";
import { HttpMarkerStore } from "../../src/dash/marker_store.js";

const sets = { sets: [{ name: "base", profile: "a.nprof", isOwn: true, markers: [] }], canSave: true };

afterEach(() => vi.unstubAllGlobals());

it("asks for the saved markers, and sends those to save", async () => {
  const asked = vi.fn(() => Promise.resolve(Response.json(sets)));
  vi.stubGlobal("fetch", asked);
  const store = new HttpMarkerStore("/data/p/");
  expect(await store.load()).toEqual(sets);
  expect(await store.save("base", [{ timeNs: 5, text: "x" }])).toEqual(sets);
  const [[address], [, { method, body }]] = asked.mock.calls as unknown as [[string, RequestInit], [string, RequestInit]];
  expect([address, method, JSON.parse(body as string)]).toEqual(["/data/p/markers", "POST", { name: "base", markers: [{ timeNs: 5, text: "x" }] }]);
});

it("says what the server says of markers that it does not save", async () => {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response("Give the markers a name to save them.\n", { status: 400, headers: { "Content-Type": "text/plain" } })));
  await expect(new HttpMarkerStore("/data/p/").save("", [])).rejects.toThrow("Give the markers a name to save them.");
});

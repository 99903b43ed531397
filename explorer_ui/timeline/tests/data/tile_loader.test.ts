import { describe, expect, it, vi } from "vitest";
import { ChunkCache, chunkKey } from "../../src/data/chunk_cache.js";
import { NameTable } from "../../src/data/names.js";
import type { DataSource } from "../../src/data/source.js";
import { placesText, TileLoader } from "../../src/data/tile_loader.js";
import { spanAnswer, track } from "../tracks.js";

interface Asked {
  path: string;
  params: Readonly<Record<string, string>>;
  signal: AbortSignal;
  answer: (bytes: ArrayBuffer) => void;
  refuse: (error: Error) => void;
}

function setUp() {
  const asked: Asked[] = [];
  const source: DataSource = {
    request: (path, params, signal) =>
      new Promise((answer, refuse) => {
        asked.push({ path, params, signal, answer, refuse });
      }),
  };
  const cache = new ChunkCache();
  const onArrival = vi.fn();
  const onError = vi.fn();
  return { asked, cache, onArrival, onError, loader: new TileLoader(() => ({ source, params: {} }), cache, new NameTable(), onArrival, onError) };
}

const tracks = [track(0), track(1), track(2), track(5)];
const demand = (level: number, first: number, end: number) => ({ tiles: { level, first, end }, tracks, isUrgent: true });
const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

describe("the loader", () => {
  it("asks once for neighbouring tiles of all tracks", () => {
    const { asked, loader } = setUp();
    loader.want([demand(4, 2, 4)]);
    loader.want([demand(4, 2, 4)]);
    expect(asked.map((one) => one.params)).toEqual([{ level: "4", tile: "2", tiles: "2", tracks: "0-2,5" }]);
  });

  it("keeps an empty chunk where a track has nothing, so that it is not asked for again", async () => {
    const { asked, cache, loader, onArrival } = setUp();
    loader.want([demand(4, 2, 3)]);
    asked[0]!.answer(spanAnswer([{ track: 1, start: 0, duration: 100 }]));
    await settled();
    expect(onArrival).toHaveBeenCalledOnce();
    expect(cache.get(chunkKey(4, 2, 1))!.length).toBe(1);
    expect(cache.get(chunkKey(4, 2, 0))!.length).toBe(0);
    loader.want([demand(4, 2, 3)]);
    expect(asked).toHaveLength(1);
  });

  it("aborts what is no longer wanted and says nothing of it", async () => {
    const { asked, loader, onArrival, onError } = setUp();
    loader.want([demand(4, 2, 3)]);
    loader.want([demand(9, 0, 1)]);
    expect(asked[0]!.signal.aborted).toBe(true);
    asked[0]!.refuse(Object.assign(new Error("gone"), { name: "AbortError" }));
    await settled();
    expect(onArrival).not.toHaveBeenCalled();
    expect(onError).not.toHaveBeenCalled();
  });

  it("tries twice, tells each failure, and tries again when asked to", async () => {
    const { asked, loader, onError } = setUp();
    loader.want([demand(4, 2, 3)]);
    asked[0]!.refuse(new Error("no"));
    await settled();
    asked[1]!.refuse(new Error("no"));
    await settled();
    expect(onError).toHaveBeenCalledTimes(2);
    expect(asked).toHaveLength(2);
    loader.retry();
    expect(asked).toHaveLength(3);
  });

  it("fetches what nobody waits for only when nothing else is on its way", async () => {
    const { asked, loader } = setUp();
    const neighbour = { ...demand(4, 9, 10), isUrgent: false };
    loader.want([demand(4, 2, 3), neighbour]);
    expect(asked).toHaveLength(1);
    asked[0]!.answer(spanAnswer([]));
    await settled();
    expect(asked[1]!.params["tile"]).toBe("9");
  });

  it("asks for counters apart", () => {
    const { asked, loader } = setUp();
    const mixed = [track(0), track(1, { isCounter: true, level: "counter" })];
    loader.want([{ ...demand(4, 2, 3), tracks: mixed }]);
    expect(asked.map((one) => [one.path, one.params["tracks"]])).toEqual([["timeline", "0"], ["counters", "1"]]);
  });
});

it("places are written as ranges", () => {
  expect(placesText([7, 1, 2, 3])).toBe("1-3,7");
  expect(placesText([])).toBe("");
});

import { describe, expect, it } from "vitest";
import { type Chunk, EMPTY_CHUNK } from "../../src/data/chunk.js";
import { ChunkCache } from "../../src/data/chunk_cache.js";

const chunk = (bytes: number): Chunk => ({ ...EMPTY_CHUNK, bytes });

describe("the cache of chunks", () => {
  it("drops what was used longest ago when its budget is passed", () => {
    const dropped: Chunk[] = [];
    const cache = new ChunkCache(100, (one) => dropped.push(one));
    for (const key of ["a", "b", "c"]) {
      cache.tick();
      cache.set(key, chunk(40));
    }
    cache.tick();
    cache.get("a");
    cache.trim(() => false);
    expect([cache.has("a"), cache.has("b"), cache.has("c")]).toEqual([true, false, true]);
    expect(dropped).toHaveLength(1);
    expect(cache.bytes).toBe(80);
  });

  it("keeps what the current frame needs, however much it is", () => {
    const cache = new ChunkCache(10);
    cache.tick();
    for (const key of ["a", "b"]) cache.set(key, chunk(40));
    cache.trim(() => false);
    expect(cache.size).toBe(2);
  });

  it("counts a chunk that is replaced once", () => {
    const cache = new ChunkCache(100);
    cache.set("a", chunk(40));
    cache.set("a", chunk(30));
    expect(cache.bytes).toBe(30);
    cache.clear();
    expect(cache.bytes).toBe(0);
  });
});

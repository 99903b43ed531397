import { describe, expect, it } from "vitest";
import { EMPTY_CHUNK } from "../../src/data/chunk.js";
import { ChunkCache, chunkKey } from "../../src/data/chunk_cache.js";
import { TILE_BUCKETS } from "../../src/data/tile.js";
import { isSharp, placedChunks, sharpTiles } from "../../src/view/scene.js";
import { TimeScale } from "../../src/view/time_scale.js";
import { track } from "../tracks.js";

const one = track(3);
// Two tiles of level 2 in sight: a pixel is 4 ns.
const scale = new TimeScale({ startNs: 0, endNs: 8 * TILE_BUCKETS }, 2 * TILE_BUCKETS);
const tiles = sharpTiles(scale);
const bounds = { startNs: 0, endNs: 8 * TILE_BUCKETS };

describe("the scene", () => {
  it("asks for the tiles in sight", () => {
    expect(tiles).toEqual({ level: 2, first: 0, end: 2 });
  });

  it("is made of sharp chunks where there are any", () => {
    const cache = new ChunkCache();
    for (const tile of [0, 1]) cache.set(chunkKey(2, tile, 3), EMPTY_CHUNK);
    const placed = placedChunks(cache, one, tiles, scale);
    expect(placed.map((part) => [part.level, part.clipLeft, part.clipRight])).toEqual([
      [2, 0, TILE_BUCKETS],
      [2, TILE_BUCKETS, 2 * TILE_BUCKETS],
    ]);
    expect(isSharp(cache, [one], tiles, bounds)).toBe(true);
  });

  it("is made of coarser chunks, cut to the tile, until the sharp ones are there", () => {
    const cache = new ChunkCache();
    cache.set(chunkKey(2, 0, 3), EMPTY_CHUNK);
    cache.set(chunkKey(5, 0, 3), EMPTY_CHUNK);
    const placed = placedChunks(cache, one, tiles, scale);
    expect(placed.map((part) => [part.level, part.clipLeft, part.isSharp])).toEqual([
      [2, 0, true],
      [5, TILE_BUCKETS, false],
    ]);
    expect(isSharp(cache, [one], tiles, bounds)).toBe(false);
  });

  it("is made of finer chunks where there are no coarser ones", () => {
    const cache = new ChunkCache();
    for (const tile of [0, 1, 3]) cache.set(chunkKey(1, tile, 3), EMPTY_CHUNK);
    const placed = placedChunks(cache, one, tiles, scale);
    expect(placed.map((part) => part.startNs / (2 * TILE_BUCKETS))).toEqual([0, 1, 3]);
  });

  it("needs nothing beyond the profile's end", () => {
    const cache = new ChunkCache();
    cache.set(chunkKey(2, 0, 3), EMPTY_CHUNK);
    expect(isSharp(cache, [one], tiles, { startNs: 0, endNs: 4 * TILE_BUCKETS })).toBe(true);
  });
});

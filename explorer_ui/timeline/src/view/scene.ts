/** Finds the chunks to draw for rows in sight: the sharp ones, or the nearest others until those arrive. */

import type { Chunk } from "../data/chunk.js";
import { type ChunkCache, chunkKey } from "../data/chunk_cache.js";
import { bucketNs, COARSEST_LEVEL, levelFor, tileNs, tilesOf, type TileSpan } from "../data/tile.js";
import type { Track } from "../data/track.js";
import type { TimeRange } from "./time_range.js";
import type { TimeScale } from "./time_scale.js";

/** How many levels finer a stand-in may be: each doubles the chunks that one tile needs. */
const FINEST_STAND_IN = 2;

/** A chunk in its place. */
export interface Placed {
  readonly chunk: Chunk;
  readonly level: number;
  /** Start of the chunk's tile. */
  readonly startNs: number;
  /** Pixels to which it is cut. */
  readonly clipLeft: number;
  readonly clipRight: number;
  readonly isSharp: boolean;
}

/** The tiles in sight, at the level that is sharp there. */
export function sharpTiles(scale: TimeScale): TileSpan {
  return tilesOf(scale.range, levelFor(scale.nsPerPixel));
}

/** Chunks of a track that cover the range, from left to right; gaps stay where nothing is known yet. */
export function placedChunks(cache: ChunkCache, track: Track, tiles: TileSpan, scale: TimeScale): Placed[] {
  const placed: Placed[] = [];
  for (let tile = tiles.first; tile < tiles.end; tile += 1) {
    const exact = cache.get(chunkKey(tiles.level, tile, track.place));
    if (exact) placed.push(placedAt(exact, tiles.level, tile, tiles.level, tile, scale));
    else placed.push(...standIns(cache, track, tiles.level, tile, scale));
  }
  return placed;
}

/** Whether every chunk in sight is sharp; tiles beyond the bounds hold nothing, and are not asked for. */
export function isSharp(cache: ChunkCache, tracks: readonly Track[], tiles: TileSpan, bounds: TimeRange): boolean {
  const all = tilesOf(bounds, tiles.level);
  for (const track of tracks) {
    for (let tile = Math.max(tiles.first, all.first); tile < Math.min(tiles.end, all.end); tile += 1) {
      if (!cache.has(chunkKey(tiles.level, tile, track.place))) return false;
    }
  }
  return true;
}

function standIns(cache: ChunkCache, track: Track, level: number, tile: number, scale: TimeScale): Placed[] {
  for (let up = 1; level + up <= COARSEST_LEVEL && up <= 24; up += 1) {
    const above = Math.floor(tile / 2 ** up);
    const found = cache.get(chunkKey(level + up, above, track.place));
    if (found) return [placedAt(found, level + up, above, level, tile, scale)];
  }
  for (let down = 1; down <= Math.min(FINEST_STAND_IN, level); down += 1) {
    const finer: Placed[] = [];
    for (let part = tile * 2 ** down; part < (tile + 1) * 2 ** down; part += 1) {
      const found = cache.get(chunkKey(level - down, part, track.place));
      if (found) finer.push(placedAt(found, level - down, part, level - down, part, scale));
    }
    if (finer.length > 0) return finer;
  }
  return [];
}

/** A chunk that stands for one tile, which may be a part of its own. */
function placedAt(chunk: Chunk, level: number, tile: number, forLevel: number, forTile: number, scale: TimeScale): Placed {
  const length = tileNs(forLevel);
  return {
    chunk,
    level,
    startNs: tile * tileNs(level),
    clipLeft: Math.max(Math.round(scale.toX(forTile * length)), 0),
    clipRight: Math.min(Math.round(scale.toX((forTile + 1) * length)), scale.width),
    isSharp: level === forLevel && level === levelFor(scale.nsPerPixel),
  };
}

/** Pixels that a bucket of a level has. */
export function bucketPixels(level: number, scale: TimeScale): number {
  return bucketNs(level) / scale.nsPerPixel;
}

/** Tiles: equal stretches of time at power-of-two resolutions, in which all data is fetched and kept. */

import type { TimeRange } from "../view/time_range.js";

/** Buckets of one tile; the routes have the same number. */
export const TILE_BUCKETS = 1024;
/** The coarsest level: buckets of 2**52 ns. */
export const COARSEST_LEVEL = 52;

/** Consecutive tiles of one level: from `first` to before `end`. */
export interface TileSpan {
  readonly level: number;
  readonly first: number;
  readonly end: number;
}

/** The level whose buckets are nearest to a pixel: from 0.71 to 1.41 pixels. */
export function levelFor(nsPerPixel: number): number {
  if (!(nsPerPixel > 1)) return 0;
  return Math.min(Math.round(Math.log2(nsPerPixel)), COARSEST_LEVEL);
}

/** Length of a bucket in ns. */
export function bucketNs(level: number): number {
  return 2 ** level;
}

/** Length of a tile in ns. */
export function tileNs(level: number): number {
  return TILE_BUCKETS * 2 ** level;
}

/** The tiles that a range touches. */
export function tilesOf(range: TimeRange, level: number): TileSpan {
  const length = tileNs(level);
  const first = Math.floor(range.startNs / length);
  return { level, first, end: Math.max(Math.ceil(range.endNs / length), first + 1) };
}

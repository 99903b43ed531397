import { describe, expect, it } from "vitest";
import { bucketNs, COARSEST_LEVEL, levelFor, TILE_BUCKETS, tileNs, tilesOf } from "../../src/data/tile.js";

describe("tiles", () => {
  it.each([0.01, 1, 1.5, 2, 3.99, 1e6, 1e15])("have buckets of about a pixel of %d ns", (nsPerPixel) => {
    const level = levelFor(nsPerPixel);
    expect(bucketNs(level)).toBeLessThanOrEqual(Math.max(nsPerPixel * Math.SQRT2, 1));
    if (nsPerPixel >= 1) expect(bucketNs(level) * Math.SQRT2).toBeGreaterThanOrEqual(nsPerPixel);
    expect(level).toBeLessThanOrEqual(COARSEST_LEVEL);
  });

  it("cover a range, also before zero", () => {
    expect(tilesOf({ startNs: -1, endNs: TILE_BUCKETS + 1 }, 0)).toEqual({ level: 0, first: -1, end: 2 });
    const length = tileNs(5);
    expect(tilesOf({ startNs: length, endNs: 2 * length }, 5)).toEqual({ level: 5, first: 1, end: 2 });
  });
});

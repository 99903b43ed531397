/**
 * Shapes: what painters draw of one track in one tile, packed for them.
 *
 * A shape reaches from `edges[2i]` to `edges[2i + 1]` in buckets from the tile's start. `looks[i]` packs, from the
 * lowest bits: depth (8), slot of the palette (8), height of the solid part in 255ths (8), height of the tint (8).
 */
export interface Shapes {
  readonly count: number;
  readonly edges: Float32Array;
  readonly looks: Uint32Array;
}

/** Shapes farther out than this are cut: a tile has 1024 buckets. */
export const FARTHEST_BUCKET = 4096;
export const DEEPEST = 255;

/** Shape with one colour over its whole height. */
export const FULL = 255;

/** Packs what a shape looks like. */
export function look(depth: number, slot: number, solid: number, tint: number): number {
  return (Math.min(depth, DEEPEST) | (slot << 8) | (solid << 16) | (tint << 24)) >>> 0;
}

/** Bytes that shapes take. */
export function shapeBytes(shapes: Shapes): number {
  return shapes.edges.byteLength + shapes.looks.byteLength;
}

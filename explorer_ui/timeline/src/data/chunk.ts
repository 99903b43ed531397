/** A chunk: the data of one track in one tile, with the shapes that stand for it. */

import { RecordBatchReader, type RecordBatch } from "apache-arrow";
import { FARTHEST_BUCKET, FULL, look, shapeBytes, type Shapes } from "../draw/shapes.js";
import type { NameTable } from "./names.js";
import { bucketNs, TILE_BUCKETS } from "./tile.js";

/** Spans at least this many buckets long may have room for a text. */
export const LABEL_BUCKETS = 10;

type Values = Float32Array | Float64Array | Uint8Array | Uint16Array | Uint32Array | Int32Array;

/** Spans and buckets of a track in a tile, by depth, then time; times in ns from the tile's start. */
export interface SpanChunk {
  readonly kind: "spans";
  readonly length: number;
  readonly depth: Values;
  readonly start: Values;
  readonly duration: Values;
  readonly count: Values;
  readonly busy: Values;
  readonly isBucket: Values;
  /** Numbers of a `NameTable`. */
  readonly name: Uint32Array;
  readonly row: Values;
  /** Rows long enough for a text. */
  readonly wide: Uint32Array;
  readonly shapes: Shapes;
  readonly bytes: number;
}

/** Samples of a counter in a tile. */
export interface CounterChunk {
  readonly kind: "samples";
  readonly length: number;
  readonly bucket: Values;
  readonly count: Values;
  readonly least: Values;
  readonly greatest: Values;
  readonly mean: Values;
  readonly shapes: Shapes;
  readonly bytes: number;
}

export type Chunk = SpanChunk | CounterChunk;

/** How a counter's values become heights. */
export interface CounterScale {
  readonly floor: number;
  readonly ceiling: number;
}

/** Chunks by tile, counted from the first that was asked for, and by place of the track. */
export type Tiles<C extends Chunk = Chunk> = ReadonlyMap<number, ReadonlyMap<number, C>>;

/** Chunks of the route `timeline`; where the answer has a column `slot`, it says the slot of the palette. */
export function readSpanTiles(
  bytes: ArrayBuffer,
  level: number,
  names: NameTable,
  slotOf: (place: number, name: number) => number = (_, name) => names.slot(name),
): Tiles<SpanChunk> {
  const found = new Map<number, Map<number, SpanChunk>>();
  for (const batch of batches(bytes)) {
    const column = columnsOf(batch);
    const codes = nameCodes(batch, names);
    const told = batch.getChild("slot")?.toArray() as Uint8Array | undefined;
    for (const { tile, track, first, end } of partsOf(column("tile"), column("track"))) {
      const cut = (name: string): Values => column(name).subarray(first, end);
      const name = codes.subarray(first, end);
      const slots = told?.subarray(first, end);
      const slot = slots ? (row: number) => slots[row]! : (row: number) => slotOf(track, name[row]!);
      put(found, tile, track, spanChunk(cut, name, level, slot));
    }
  }
  return found;
}

/** Chunks of the route `counters`. */
export function readCounterTiles(bytes: ArrayBuffer, scaleOf: (track: number) => CounterScale): Tiles<CounterChunk> {
  const found = new Map<number, Map<number, CounterChunk>>();
  for (const batch of batches(bytes)) {
    const column = columnsOf(batch);
    for (const { tile, track, first, end } of partsOf(column("tile"), column("track"))) {
      const cut = (name: string): Values => column(name).subarray(first, end);
      put(found, tile, track, counterChunk(cut, scaleOf(track)));
    }
  }
  return found;
}

function put<C>(tiles: Map<number, Map<number, C>>, tile: number, track: number, chunk: C): void {
  let chunks = tiles.get(tile);
  if (!chunks) tiles.set(tile, (chunks = new Map<number, C>()));
  chunks.set(track, chunk);
}

/** A chunk of a track that has nothing in the tile. */
export const EMPTY_CHUNK: SpanChunk = {
  kind: "spans",
  length: 0,
  depth: new Uint16Array(0),
  start: new Float32Array(0),
  duration: new Float32Array(0),
  count: new Uint32Array(0),
  busy: new Uint8Array(0),
  isBucket: new Uint8Array(0),
  name: new Uint32Array(0),
  row: new Uint32Array(0),
  wide: new Uint32Array(0),
  shapes: { count: 0, edges: new Float32Array(0), looks: new Uint32Array(0) },
  bytes: 64,
};

function spanChunk(
  cut: (name: string) => Values,
  name: Uint32Array,
  level: number,
  slotOf: (row: number) => number,
): SpanChunk {
  const [depth, start, duration] = [cut("depth"), cut("start"), cut("duration")];
  const [busy, isBucket] = [cut("busy"), cut("is_bucket")];
  const length = name.length;
  const perBucket = 1 / bucketNs(level);
  const edges = new Float32Array(2 * length);
  const looks = new Uint32Array(length);
  const wide: number[] = [];
  for (let row = 0; row < length; row += 1) {
    const left = start[row]! * perBucket;
    const width = isBucket[row] ? 1 : duration[row]! * perBucket;
    edges[2 * row] = Math.max(left, -FARTHEST_BUCKET);
    edges[2 * row + 1] = Math.min(left + width, FARTHEST_BUCKET + TILE_BUCKETS);
    looks[row] = look(depth[row]!, slotOf(row), isBucket[row] ? busy[row]! : FULL, FULL);
    if (width >= LABEL_BUCKETS) wide.push(row);
  }
  const shapes = { count: length, edges, looks };
  return {
    kind: "spans",
    length,
    depth,
    start,
    duration,
    count: cut("count"),
    busy,
    isBucket,
    name,
    row: cut("row"),
    wide: Uint32Array.from(wide),
    shapes,
    bytes: length * 26 + wide.length * 4 + shapeBytes(shapes) + 400,
  };
}

/** A counter's slot of the palette, and how its shapes are made: an area under the mean, tinted to the greatest. */
function counterChunk(cut: (name: string) => Values, scale: CounterScale): CounterChunk {
  const [bucket, count] = [cut("bucket"), cut("count")];
  const [least, greatest, mean] = [cut("least"), cut("greatest"), cut("mean")];
  const length = bucket.length;
  const edges = new Float32Array(2 * length);
  const looks = new Uint32Array(length);
  const span = scale.ceiling - scale.floor || 1;
  const height = (value: number): number =>
    Math.round(Math.min(Math.max((value - scale.floor) / span, 0), 1) * FULL);
  for (let row = 0; row < length; row += 1) {
    edges[2 * row] = bucket[row]!;
    edges[2 * row + 1] = row + 1 < length ? bucket[row + 1]! : TILE_BUCKETS;
    looks[row] = look(0, 0, height(mean[row]!), height(greatest[row]!));
  }
  const shapes = { count: length, edges, looks };
  const bytes = length * 30 + shapeBytes(shapes) + 400;
  return { kind: "samples", length, bucket, count, least, greatest, mean, shapes, bytes };
}

function batches(bytes: ArrayBuffer): RecordBatch[] {
  const reader = RecordBatchReader.from(new Uint8Array(bytes));
  return [...reader];
}

function columnsOf(batch: RecordBatch): (name: string) => Values {
  return (name) => {
    const child = batch.getChild(name);
    if (child === null) throw new Error(`The answer lacks the column ${name}.`);
    return child.toArray() as Values;
  };
}

/** Numbers of the names of a batch. */
function nameCodes(batch: RecordBatch, names: NameTable): Uint32Array {
  const data = batch.getChild("name")?.data[0];
  if (!data) throw new Error("The answer lacks the column name.");
  const { dictionary } = data;
  const own = Uint32Array.from({ length: dictionary?.length ?? 0 }, (_, place) =>
    names.code((dictionary?.get(place) as string | null) ?? ""),
  );
  const indices = data.values as Int32Array;
  const codes = new Uint32Array(batch.numRows);
  for (let row = 0; row < codes.length; row += 1) codes[row] = own[indices[row]!]!;
  return codes;
}

interface Part {
  readonly tile: number;
  readonly track: number;
  readonly first: number;
  /** The row after the last. */
  readonly end: number;
}

/** Consecutive rows of one track in one tile. */
function* partsOf(tiles: Values, tracks: Values): Generator<Part> {
  let first = 0;
  for (let row = 1; row <= tiles.length; row += 1) {
    if (row < tiles.length && tiles[row] === tiles[first] && tracks[row] === tracks[first]) continue;
    yield { tile: tiles[first]!, track: tracks[first]!, first, end: row };
    first = row;
  }
}

/** Data for the demo: a made-up run of any length, computed for each tile when it is asked for. */

import { Dictionary, Int32, Table, tableFromArrays, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import type { DataSource } from "../src/data/source.js";
import { bucketNs, TILE_BUCKETS, tileNs } from "../src/data/tile.js";

const SECONDS = 10;
const NAMES = ["MATMUL", "LDWEIGHTS", "ACTIVATE", "TENSOR_TENSOR", "TENSOR_REDUCE", "DMA_TRIGGER"];

interface DemoTrack {
  readonly id: string;
  readonly name: string;
  readonly level: string;
  readonly headings: readonly string[];
  /** A span begins every so many ns and lasts for a share of that. */
  readonly everyNs: number;
  readonly share: number;
}

const TRACKS: readonly DemoTrack[] = [
  { id: "host", name: "Thread 0", level: "host_thread", headings: ["train.py"], everyNs: 41e6, share: 0.93 },
  ...["Tensor", "Vector", "Scalar", "GpSimd", "Sync"].map((name, place) => ({
    id: name,
    name,
    level: "engine",
    headings: ["train.py", "NeuronCore 0"],
    everyNs: 90 + 37 * place ** 2,
    share: 0.75 - place * 0.12,
  })),
  ...Array.from({ length: 16 }, (_, place) => ({
    id: `queue${place}`,
    name: `qSyncIn${place}`,
    level: "dma_queue",
    headings: ["train.py", "NeuronCore 0", "DMA queues"],
    everyNs: 2300 + 190 * place,
    share: 0.5,
  })),
];

interface DemoRow {
  tile: number;
  track: number;
  start: number;
  duration: number;
  count: number;
  busy: number;
  isBucket: number;
  name: string;
  row: number;
}

/** Answers as a server would. */
export class DemoSource implements DataSource {
  request(path: string, params: Readonly<Record<string, string>>): Promise<ArrayBuffer> {
    if (path === "timeline") return Promise.resolve(timeline(params));
    const answers: Record<string, unknown> = {
      tracks: tracks(),
      details: { columns: { note: "The demo knows no more." }, source: null, belongs: [] },
      dependencies: { spans: [], edges: [] },
      statistics: { tracks: [] },
      names: { names: [] },
      search: { hits: [], is_cut: false },
    };
    return Promise.resolve(new TextEncoder().encode(JSON.stringify(answers[path] ?? {})).buffer);
  }
}

function tracks(): unknown {
  const listed = TRACKS.map(({ id, name, level, headings, everyNs }) => ({
    id, name, level, headings, rank: 0, core: 0, table: "", depths: 1, start_ns: 0, end_ns: SECONDS * 1e9,
    spans: Math.floor((SECONDS * 1e9) / everyNs), unit: "", counter: false, least: 0, greatest: 0,
  }));
  return {
    profile: "demo", name: "A made-up run", complete: true, origin_ns: "0", start_ns: 0, end_ns: SECONDS * 1e9,
    tracks: listed,
  };
}

function timeline(params: Readonly<Record<string, string>>): ArrayBuffer {
  const [level, first, count] = [Number(params["level"]), Number(params["tile"]), Number(params["tiles"])];
  const rows: DemoRow[] = [];
  for (let tile = 0; tile < count; tile += 1) {
    for (const place of places(params["tracks"] ?? "")) rows.push(...tileRows(level, first + tile, tile, place));
  }
  return encoded(rows);
}

function tileRows(level: number, tile: number, number: number, place: number): DemoRow[] {
  const { everyNs, share } = TRACKS[place]!;
  const [origin, unit] = [tile * tileNs(level), bucketNs(level)];
  const from = Math.max(Math.floor(origin / everyNs), 0);
  const to = Math.min(Math.ceil((origin + tileNs(level)) / everyNs), Math.floor((SECONDS * 1e9) / everyNs));
  const common = (row: number) => ({ tile: number, track: place, name: NAMES[(row * 7 + place) % NAMES.length]!, row });
  if (everyNs * share >= unit) {
    return Array.from({ length: Math.max(to - from, 0) }, (_, at) => ({
      ...common(from + at),
      start: (from + at) * everyNs - origin,
      duration: everyNs * share,
      count: 1,
      busy: 255,
      isBucket: 0,
    }));
  }
  return Array.from({ length: TILE_BUCKETS }, (_, bucket) => {
    const row = Math.floor((origin + bucket * unit) / everyNs);
    const wave = 0.6 + 0.4 * Math.sin(row / 3000 + place);
    return {
      ...common(row),
      start: bucket * unit,
      duration: everyNs * share,
      count: Math.ceil(unit / everyNs),
      busy: Math.round(255 * share * wave),
      isBucket: 1,
    };
  }).filter((row) => row.row >= 0 && row.row * everyNs < SECONDS * 1e9);
}

function encoded(rows: readonly DemoRow[]): ArrayBuffer {
  const columns = tableFromArrays({
    tile: Uint8Array.from(rows, (row) => row.tile),
    track: Uint16Array.from(rows, (row) => row.track),
    depth: new Uint16Array(rows.length),
    start: Float32Array.from(rows, (row) => row.start),
    duration: Float32Array.from(rows, (row) => row.duration),
    count: Uint32Array.from(rows, (row) => row.count),
    busy: Uint8Array.from(rows, (row) => row.busy),
    is_bucket: Uint8Array.from(rows, (row) => row.isBucket),
    row: Uint32Array.from(rows, (row) => row.row),
  });
  const names = vectorFromArray(rows.map((row) => row.name), new Dictionary(new Utf8(), new Int32()));
  return tableToIPC(columns.assign(new Table({ name: names })), "stream").slice().buffer;
}

function places(text: string): number[] {
  return text.split(",").flatMap((part) => {
    const [first = 0, last = first] = part.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  });
}

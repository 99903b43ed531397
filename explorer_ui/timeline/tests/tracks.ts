/** Tracks and answers for tests. */

import { Dictionary, Int32, Table, tableFromArrays, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import type { Track } from "../src/data/track.js";

export function track(place: number, change: Partial<Track> = {}): Track {
  return {
    place,
    listed: place,
    base: 0,
    id: `p0/core0/engine/${place}`,
    level: "engine",
    name: `Engine ${place}`,
    headings: ["rank 0", "NeuronCore 0"],
    rank: 0,
    core: 0,
    table: "Instruction",
    spans: 100,
    depths: 1,
    startNs: 0,
    endNs: 1000,
    unit: "",
    isCounter: false,
    isUse: false,
    isCharged: false,
    isBand: false,
    host: "",
    charged: null,
    isIdle: false,
    least: 0,
    greatest: 0,
    ...change,
  };
}

/** One thing that a tile holds. */
export interface Row {
  tile?: number;
  track: number;
  depth?: number;
  start: number;
  duration: number;
  count?: number;
  busy?: number;
  isBucket?: boolean;
  name?: string;
  row?: number;
}

/** An answer of the route `timeline` with one tile; with a colour of each row, where colours are asked for. */
export function spanAnswer(rows: readonly Row[], slots?: readonly number[]): ArrayBuffer {
  const columns = tableFromArrays({
    tile: Uint8Array.from(rows, (row) => row.tile ?? 0),
    track: Uint16Array.from(rows, (row) => row.track),
    depth: Uint16Array.from(rows, (row) => row.depth ?? 0),
    start: Float32Array.from(rows, (row) => row.start),
    duration: Float32Array.from(rows, (row) => row.duration),
    count: Uint32Array.from(rows, (row) => row.count ?? 1),
    busy: Uint8Array.from(rows, (row) => row.busy ?? 255),
    is_bucket: Uint8Array.from(rows, (row) => (row.isBucket ? 1 : 0)),
    row: Uint32Array.from(rows, (row, place) => row.row ?? place),
    ...(slots && { slot: Uint8Array.from(slots) }),
  });
  const names = vectorFromArray(rows.map((row) => row.name ?? ""), new Dictionary(new Utf8(), new Int32()));
  const table = columns.assign(new Table({ name: names }));
  return tableToIPC(table, "stream").slice().buffer;
}

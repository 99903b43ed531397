/** Colours by engine: who runs a span, or whom it keeps busy. The slots are those of the Explorer's other pages. */

import type { Track } from "../data/track.js";

export type ColourBy = "engine" | "name" | GroupedBy;

/** Ways to colour of which the server tells each span's slot. */
export type GroupedBy = "module" | "line" | "opcode" | "wait";

export const GROUPED_BY: readonly GroupedBy[] = ["module", "line", "opcode", "wait"];

export function isGrouped(by: ColourBy): by is GroupedBy {
  return (GROUPED_BY as readonly string[]).includes(by);
}

export interface EngineColour {
  readonly key: string;
  readonly name: string;
  readonly slot: number;
}

/** In the order of the legend; the last one is for all that no engine runs. */
export const ENGINE_COLOURS: readonly EngineColour[] = [
  { key: "tensor", name: "Tensor", slot: 4 },
  { key: "vector", name: "Vector", slot: 1 },
  { key: "scalar", name: "Scalar", slot: 2 },
  { key: "gpsimd", name: "GpSimd", slot: 3 },
  { key: "sync", name: "Sync", slot: 0 },
  { key: "dma", name: "DMA", slot: 6 },
  { key: "collective", name: "Collectives", slot: 5 },
  { key: "other", name: "Host, waits", slot: 7 },
];

export const OTHER_SLOT = 7;
/** Id of the track of findings. */
const FINDINGS = "bands/findings";

const BY_LEVEL: Readonly<Record<string, string>> = {
  dma_queue: "dma",
  dma_engine: "dma",
  collective: "collective",
  collective_core: "collective",
};

/** What the server tells of a profile's names. */
export interface NamedEngines {
  /** Engine by name of the operations of a level: "framework", "hlo". */
  readonly operations: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Instructions that only order others: an engine does not work while they run. */
  readonly control: readonly string[];
}

export const NO_NAMES: NamedEngines = { operations: {}, control: [] };

/** The engine of what a track's row tells of; undefined where it is that of each operation, or none. */
export function engineOf(track: Track): EngineColour | undefined {
  const known = BY_LEVEL[track.level];
  if (known !== undefined) return ENGINE_COLOURS.find((one) => one.key === known);
  if (track.level !== "engine") return undefined;
  const name = track.name.toLowerCase();
  return ENGINE_COLOURS.find((one) => name.startsWith(one.key));
}

/** The slot of a span by the engine that runs it. */
export function engineSlot(track: Track, name: string, named: NamedEngines): number {
  if (track.isBand) return track.id === FINDINGS ? 0 : 1;
  const engine = engineOf(track);
  if (engine) return track.level === "engine" && named.control.includes(name) ? OTHER_SLOT : engine.slot;
  const key = named.operations[track.level]?.[name];
  return ENGINE_COLOURS.find((one) => one.key === key)?.slot ?? OTHER_SLOT;
}

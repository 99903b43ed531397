/** Under which headings tracks stand: those of the profile, or regrouped by what they have in common. */

import type { Track } from "../data/track.js";
import { engineOf } from "../draw/engine_colours.js";

/** By what tracks are grouped, and what to call it; the first is how the profile has them. */
export const GROUPINGS = [
  ["process", "Processes"],
  ["core", "Cores"],
  ["engine", "Engines"],
  ["thread", "Threads"],
  ["rank", "Ranks"],
  ["host", "Hosts"],
] as const;

export type Grouping = (typeof GROUPINGS)[number][0];

const HOST_LEVELS = new Set(["host_thread", "thread", "runtime", "annotation"]);
const LEVEL_NAMES: Readonly<Record<string, string>> = {
  module: "Modules",
  framework: "Framework operations",
  hlo: "HLO operations",
  dma_queue: "DMA",
  dma_engine: "DMA",
  collective: "Collectives",
  collective_core: "Collectives",
};

/** A text as a grouping; the profile's own where it is none. */
export function groupingOf(text: string | null | undefined): Grouping {
  return GROUPINGS.find(([name]) => name === text)?.[0] ?? "process";
}

/** Tracks of a grouping, those of one heading behind each other, and otherwise in the order in which they come. */
export function regrouped(tracks: readonly Track[], by: Grouping): readonly Track[] {
  if (by === "process") return tracks;
  const groups = new Map<string, Track[]>();
  for (const track of tracks) {
    const placed = placedBy(track, by);
    const key = placed.headings[0] ?? "";
    const group = groups.get(key);
    if (group) group.push(placed);
    else groups.set(key, [placed]);
  }
  return [...groups.values()].flatMap(gathered);
}

/** Tracks of a group with all of each inner heading behind each other. */
function gathered(tracks: readonly Track[]): readonly Track[] {
  const inner = new Map<string, Track[]>();
  for (const track of tracks) {
    const key = track.headings.join("\n");
    const same = inner.get(key);
    if (same) same.push(track);
    else inner.set(key, [track]);
  }
  return [...inner.values()].flat();
}

/** A track as it stands in a grouping: what its heading no longer says becomes part of its name. */
function placedBy(track: Track, by: Grouping): Track {
  const [process = "", ...rest] = track.headings;
  const [core] = track.core === null ? [] : rest;
  const beyond = core === undefined ? rest : rest.slice(1);
  switch (by) {
    case "core":
      return withHeadings(track, [core ?? "Host", process, ...beyond]);
    case "engine":
      return withHeadings(track, [kindOf(track), ...beyond], nameWith(track, [process, core]));
    case "thread":
      return HOST_LEVELS.has(track.level)
        ? withHeadings(track, ["Threads of the host"], nameWith(track, [process]))
        : withHeadings(track, ["Devices", process, ...rest]);
    case "rank":
      return withHeadings(track, [track.rank === null ? "No rank" : `Rank ${track.rank}`, ...rest]);
    case "host":
      return withHeadings(track, [track.host || "Host not known", ...track.headings]);
    default:
      return track;
  }
}

function withHeadings(track: Track, headings: readonly string[], name = track.name): Track {
  return { ...track, headings, name, charged: track.charged && withHeadings(track.charged, headings, name) };
}

function nameWith(track: Track, places: readonly (string | undefined)[]): string {
  return [track.name, ...places.filter(Boolean)].join(" · ");
}

/** What runs a track's spans, as a heading. */
function kindOf(track: Track): string {
  if (track.isCounter) return "Counters";
  const known = LEVEL_NAMES[track.level];
  if (known !== undefined) return known;
  return track.level === "engine" ? (engineOf(track)?.name ?? track.name) : "Host";
}

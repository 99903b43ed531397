/** What to fetch for a view, the most urgent first. */

import type { Demand } from "../data/tile_loader.js";
import { COARSEST_LEVEL, levelFor, tilesOf } from "../data/tile.js";
import type { Track } from "../data/track.js";
import { type Layout, type Row, rowsBetween } from "./layout.js";
import { moved, zoomed } from "./time_range.js";
import type { Viewport } from "./viewport.js";

/** Screens above and below that are fetched ahead. */
const AHEAD = 0.7;

/** Tracks whose rows stand between two heights, the pinned ones included; each once. */
export function tracksBetween(layout: Layout, top: number, bottom: number): Track[] {
  const found = new Set<Track>();
  for (const row of layout.pinned) found.add(row.track);
  for (const row of rowsBetween(layout.rows, top, bottom)) for (const track of drawnTracks(row)) found.add(track);
  return [...found];
}

/** Tracks whose spans a row shows. */
function drawnTracks(row: Row): readonly Track[] {
  if (row.kind === "track") return [row.track];
  return row.idle && !row.isOpen ? row.tracks : [];
}

/** Tracks in sight. */
export function visibleTracks(layout: Layout, viewport: Viewport): Track[] {
  return tracksBetween(layout, viewport.scrollTop, viewport.scrollTop + viewport.height);
}

/** First what is in sight, then its neighbours in time, above and below, then one step of zooming out. */
export function demandsFor(layout: Layout, viewport: Viewport): Demand[] {
  const { scale, bounds, height, scrollTop } = viewport;
  const level = levelFor(scale.nsPerPixel);
  const visible = visibleTracks(layout, viewport);
  const around = tracksBetween(layout, scrollTop - height * AHEAD, scrollTop + height * (1 + AHEAD));
  const tiles = clipped(tilesOf(scale.range, level), bounds);
  const demands: Demand[] = [
    { tiles, tracks: visible, isUrgent: true },
    { tiles, tracks: around.filter((track) => !visible.includes(track)), isUrgent: false },
  ];
  const width = scale.range.endNs - scale.range.startNs;
  for (const byNs of [width / 2, -width / 2]) {
    demands.push({ tiles: clipped(tilesOf(moved(scale.range, byNs), level), bounds), tracks: visible, isUrgent: false });
  }
  const out = zoomed(scale.range, 2, (scale.range.startNs + scale.range.endNs) / 2);
  if (level < COARSEST_LEVEL && !viewport.isWhole) {
    demands.push({ tiles: clipped(tilesOf(out, level + 1), bounds), tracks: visible, isUrgent: false });
  }
  return demands;
}

/** Tiles that the profile has anything in. */
function clipped(tiles: Demand["tiles"], bounds: { startNs: number; endNs: number }): Demand["tiles"] {
  const all = tilesOf(bounds, tiles.level);
  const first = Math.max(tiles.first, all.first);
  return { level: tiles.level, first, end: Math.max(Math.min(tiles.end, all.end), first) };
}

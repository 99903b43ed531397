/** The lines of the mini-map: how busy the most telling tracks are over the whole profile. */

import type { Core } from "../core.js";
import type { Demand } from "../data/tile_loader.js";
import { bucketNs, levelFor, tilesOf } from "../data/tile.js";
import type { Track } from "../data/track.js";
import { engineOf } from "../draw/engine_colours.js";
import { PALETTES } from "../draw/palette.js";
import type { MapLine } from "../panels/minimap.js";
import { placedChunks } from "../view/scene.js";
import { lengthOf } from "../view/time_range.js";
import { TimeScale } from "../view/time_scale.js";

const MOST_LINES = 5;

/** Tracks for the map: engines first, of those with the most spans; in the order in which they are drawn. */
export function overviewTracks(tracks: readonly Track[]): Track[] {
  const spans = tracks.filter((track) => !track.isCounter && track.spans > 0);
  const engines = spans.filter((track) => track.level === "engine");
  const chosen = engines.length >= 2 ? engines : spans;
  const most = [...chosen].sort((one, other) => other.spans - one.spans).slice(0, MOST_LINES);
  return chosen.filter((track) => most.includes(track));
}

/** What to fetch for the map. */
export function overviewDemand(core: Core, tracks: readonly Track[], width: number): Demand {
  const bounds = core.mapBounds;
  const level = levelFor(lengthOf(bounds) / Math.max(width, 1));
  return { tiles: tilesOf(bounds, level), tracks, isUrgent: false };
}

/** Lines of the map; null while data is missing. */
export function overviewLines(core: Core, tracks: readonly Track[], width: number): MapLine[] | null {
  const demand = overviewDemand(core, tracks, width);
  const scale = new TimeScale(core.mapBounds, width);
  const colours = PALETTES[core.theme.palette];
  const lines: MapLine[] = [];
  for (const [place, track] of tracks.entries()) {
    const shares = new Float32Array(width);
    for (const part of placedChunks(core.cache, track, demand.tiles, scale)) {
      const { chunk } = part;
      if (chunk.kind !== "spans" || part.level !== demand.tiles.level) return null;
      const unit = bucketNs(part.level);
      for (let at = 0; at < chunk.length; at += 1) {
        if (chunk.depth[at] !== 0) continue;
        const isBucket = chunk.isBucket[at] === 1;
        const start = Math.max(chunk.start[at]!, 0);
        const end = isBucket ? start + unit : Math.min(chunk.start[at]! + chunk.duration[at]!, unit * 1024);
        const from = Math.max(Math.floor(scale.toX(part.startNs + start)), 0);
        const to = Math.min(Math.ceil(scale.toX(part.startNs + end)), width);
        const share = isBucket ? chunk.busy[at]! / 255 : 1;
        for (let x = from; x < to; x += 1) shares[x] = Math.max(shares[x]!, share);
      }
    }
    lines.push({ colour: colours[engineOf(track)?.slot ?? place % colours.length]!, shares });
  }
  return lines;
}

/** The mini-map's content: drawn once its data is there, and again when marks, size or colours change. */

import type { Core } from "../core.js";
import type { Demand } from "../data/tile_loader.js";
import type { Track } from "../data/track.js";
import type { Minimap } from "../panels/minimap.js";
import { isSharp } from "../view/scene.js";
import { overviewDemand, overviewLines, overviewTracks } from "./overview.js";

export class OverviewMap {
  private tracks: readonly Track[] = [];
  private isDrawn = false;

  constructor(
    private readonly core: Core,
    private readonly minimap: Minimap,
  ) {}

  /** Show a profile with these tracks. */
  open(tracks: readonly Track[]): void {
    this.tracks = overviewTracks(tracks);
    this.redraw();
  }

  /** Draw again with the next frame. */
  redraw(): void {
    this.isDrawn = false;
  }

  /** What to fetch. */
  get demand(): Demand {
    return overviewDemand(this.core, this.tracks, this.minimap.columns);
  }

  /** Draw if there is need and data; `times` are those of hits, marked beside the user's markers. */
  draw(times: () => readonly number[]): void {
    if (this.isDrawn) return;
    const { core, tracks, minimap } = this;
    const bounds = core.mapBounds;
    const lines = overviewLines(core, tracks, minimap.columns);
    if (!lines || !isSharp(core.cache, tracks, this.demand.tiles, bounds)) return;
    this.isDrawn = true;
    minimap.draw(bounds, lines, [...times(), ...core.view.markers.map((marker) => marker.timeNs)], core.theme);
  }
}

/** Lighting up what belongs together: chunks of their own, drawn over the others, which turn faint. */

import type { Core } from "../core.js";
import { ChunkCache } from "../data/chunk_cache.js";
import type { Chunk } from "../data/chunk.js";
import { requestJson } from "../data/source.js";
import { TileLoader } from "../data/tile_loader.js";
import type { TileSpan } from "../data/tile.js";
import type { Track } from "../data/track.js";
import { demandsFor, visibleTracks } from "../view/demands.js";
import type { TrackRow } from "../view/layout.js";
import { isSharp, placedChunks, type Placed, sharpTiles } from "../view/scene.js";
import type { Highlight } from "../view/view_state.js";

const BUDGET_BYTES = 24 * 2 ** 20;

function canBeLit(track: Track): boolean {
  return !track.isCounter && !track.isBand;
}

export class Lit {
  private readonly cache: ChunkCache;
  private loader: TileLoader | null = null;
  private what: Highlight | null = null;
  private asking: AbortController | null = null;

  constructor(
    private readonly core: Core,
    release: (chunk: Chunk) => void,
    private readonly onError: (error: unknown) => void,
  ) {
    this.cache = new ChunkCache(BUDGET_BYTES, release);
    core.onChange((changed) => {
      if (changed.has("highlight")) this.light(core.view.highlight);
      if (changed.has("highlight") || changed.has("span")) this.stopAsking();
    });
  }

  /** Chunks of what is lit, for the rows that are drawn; null where nothing is chosen to be. */
  get placed(): ((row: TrackRow, tiles: TileSpan) => readonly Placed[]) | null {
    if (!this.what) return null;
    const { scale } = this.core.viewport;
    return (row, tiles) => (row.track.isCounter || row.track.isBand ? [] : placedChunks(this.cache, row.track, tiles, scale));
  }

  /** Whether all of what is lit and in sight is there. */
  get isSharp(): boolean {
    if (!this.what) return true;
    const { layout, viewport } = this.core;
    const tracks = visibleTracks(layout, viewport).filter(canBeLit);
    return isSharp(this.cache, tracks, sharpTiles(viewport.scale), viewport.bounds);
  }

  get isLoading(): boolean {
    return this.loader?.isLoading ?? false;
  }

  /** Light something up; null for nothing. */
  light(what: Highlight | null): void {
    if (what?.by === this.what?.by && what?.value === this.what?.value) return;
    this.loader?.close();
    this.cache.clear();
    this.what = what;
    this.loader = what
      ? new TileLoader((track) => this.core.originOf(track), this.cache, this.core.names, () => this.core.redraw(), this.onError, {
          path: "lit",
          params: { by: what.by, value: what.value },
        })
      : null;
    this.core.redraw();
  }

  /** Fetch what the view needs. */
  want(): void {
    this.cache.tick();
    if (!this.loader) return;
    const demands = demandsFor(this.core.layout, this.core.viewport).filter((demand) => demand.isUrgent);
    this.loader.want(demands.map((demand) => ({ ...demand, tracks: demand.tracks.filter(canBeLit) })));
    this.cache.trim(() => false);
  }

  /** Light up what the chosen span belongs to most closely; where something is or is about to be, nothing any more. */
  async toggleChosen(): Promise<void> {
    const { core } = this;
    const { span, highlight } = core.view;
    const track = span && core.track(span.track);
    if (highlight || this.asking || !span || !track) {
      core.update({ highlight: null });
      return;
    }
    const params = { track: String(track.listed), row: String(span.row), depth: String(span.depth ?? 0) };
    const { source } = core.originOf(track);
    const asking = (this.asking = new AbortController());
    try {
      const answer = await requestJson<{ belongs: (Highlight & { name: string })[] }>(source, "details", params, asking.signal);
      if (asking.signal.aborted) return;
      const first = answer.belongs[0];
      core.update({ highlight: first ? { by: first.by, value: first.value, label: first.name } : { by: "name", value: span.name } });
    } finally {
      if (this.asking === asking) this.asking = null;
    }
  }

  /** What was to be lit is no longer asked for. */
  private stopAsking(): void {
    this.asking?.abort();
    this.asking = null;
  }

  destroy(): void {
    this.stopAsking();
    this.loader?.close();
    this.cache.clear();
  }
}

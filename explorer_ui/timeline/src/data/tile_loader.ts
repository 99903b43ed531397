/** Fetches chunks: what is on screen first, neighbours when nothing else is asked for; stale requests are aborted. */

import { EMPTY_CHUNK, readCounterTiles, readSpanTiles, type Tiles } from "./chunk.js";
import { type ChunkCache, chunkKey } from "./chunk_cache.js";
import type { NameTable } from "./names.js";
import { type DataSource, isAbort } from "./source.js";
import type { TileSpan } from "./tile.js";
import type { Track } from "./track.js";

/** Chunks that are wanted, the most urgent demand first. */
export interface Demand {
  readonly tiles: TileSpan;
  readonly tracks: readonly Track[];
  /** Whether the user waits for it. */
  readonly isUrgent: boolean;
}

interface Request {
  readonly level: number;
  readonly first: number;
  readonly end: number;
  readonly tracks: readonly Track[];
  readonly isUrgent: boolean;
}

interface Running {
  readonly request: Request;
  readonly keys: ReadonlySet<string>;
  readonly abort: AbortController;
}

/** A route other than the usual ones, with parameters of its own. */
export interface Route {
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
}

const MOST_RUNNING = 3;
const MOST_TILES = 8;

/** Where the data of a track comes from, and parameters that go with each request for it. */
export interface Origin {
  readonly source: DataSource;
  readonly params: Readonly<Record<string, string>>;
}

export class TileLoader {
  private running: Running[] = [];
  private demands: readonly Demand[] = [];
  private failed = new Map<string, number>();
  private isClosed = false;

  /**
   * @param originOf Tells where a track's data comes from.
   * @param slotOf Slot of the palette of a name on a track.
   * @param onArrival Called when chunks have come into the cache.
   * @param onError Called with what a request failed with, once per failure.
   */
  constructor(
    private readonly originOf: (track: Track) => Origin,
    private readonly cache: ChunkCache,
    private readonly names: NameTable,
    private readonly onArrival: () => void,
    private readonly onError: (error: unknown) => void,
    private readonly route: Route | null = null,
    private readonly slotOf: ((track: Track, name: number) => number) | null = null,
  ) {}

  /** Whether anything that the user waits for is on its way. */
  get isLoading(): boolean {
    return this.running.some((running) => running.request.isUrgent);
  }

  /** Replace what is wanted; what is no longer wanted is aborted. */
  want(demands: readonly Demand[]): void {
    this.demands = demands;
    const wanted = new Set<string>();
    for (const demand of demands) {
      for (const key of keysOf(demand.tiles, demand.tracks)) wanted.add(key);
    }
    for (const running of this.running) {
      if (![...running.keys].some((key) => wanted.has(key))) running.abort.abort();
    }
    this.running = this.running.filter((running) => !running.abort.signal.aborted);
    this.start();
  }

  /** Forget failures, so that they are tried again. */
  retry(): void {
    this.failed.clear();
    this.start();
  }

  close(): void {
    this.isClosed = true;
    for (const running of this.running) running.abort.abort();
    this.running = [];
  }

  private start(): void {
    for (const demand of this.demands) {
      for (const request of this.missing(demand)) {
        const room = request.isUrgent ? MOST_RUNNING : 1;
        if (this.running.length >= room) return;
        this.run(request);
      }
    }
  }

  /** Requests for what of a demand is neither here nor on its way: one for each run of tiles that lack the same. */
  private missing(demand: Demand): Request[] {
    const { level, first, end } = demand.tiles;
    const found: Request[] = [];
    for (const kind of new Set(demand.tracks.map(kindOf))) {
      const tracks = demand.tracks.filter((track) => kindOf(track) === kind);
      let isRun = false;
      for (let tile = first; tile < end; tile += 1) {
        const lacking = tracks.filter((track) => this.lacks(chunkKey(level, tile, track.place)));
        const last = isRun ? found.at(-1) : undefined;
        isRun = lacking.length > 0;
        if (!isRun) continue;
        if (last && last.end - last.first < MOST_TILES && sameTracks(last.tracks, lacking)) {
          found[found.length - 1] = { ...last, end: tile + 1 };
        } else {
          found.push({ level, first: tile, end: tile + 1, tracks: lacking, isUrgent: demand.isUrgent });
        }
      }
    }
    return found;
  }

  private lacks(key: string): boolean {
    return (
      !this.cache.has(key) && (this.failed.get(key) ?? 0) < 2 && !this.running.some((running) => running.keys.has(key))
    );
  }

  private run(request: Request): void {
    const keys = new Set(keysOf(request, request.tracks));
    const running: Running = { request, keys, abort: new AbortController() };
    this.running.push(running);
    this.fetch(running)
      .then(
        () => {
          if (!running.abort.signal.aborted) this.onArrival();
        },
        (error: unknown) => {
          if (running.abort.signal.aborted || isAbort(error)) return;
          for (const key of keys) this.failed.set(key, (this.failed.get(key) ?? 0) + 1);
          this.onError(error);
        },
      )
      .finally(() => {
        this.running = this.running.filter((one) => one !== running);
        if (!this.isClosed) this.start();
      });
  }

  private async fetch(running: Running): Promise<void> {
    const { level, first, end, tracks } = running.request;
    const [one] = tracks;
    if (!one) return;
    const { isCounter } = one;
    const path = one.isBand ? "bands/tiles" : one.isUse ? "use" : one.isCharged ? "charged" : (this.route?.path ?? (isCounter ? "counters" : "timeline"));
    const origin = this.originOf(one);
    const byPlace = new Map(tracks.map((track) => [track.listed, track]));
    const params = {
      ...this.route?.params,
      ...origin.params,
      level: String(level),
      tile: String(first),
      tiles: String(end - first),
      tracks: placesText([...byPlace.keys()]),
    };
    const bytes = await origin.source.request(path, params, running.abort.signal);
    if (running.abort.signal.aborted) return;
    const tiles: Tiles = isCounter
      ? readCounterTiles(bytes, (place) => counterScale(byPlace.get(place)))
      : readSpanTiles(bytes, level, this.names, (place, name) => {
          const track = byPlace.get(place);
          return track && this.slotOf ? this.slotOf(track, name) : this.names.slot(name);
        });
    for (let tile = first; tile < end; tile += 1) {
      const chunks = tiles.get(tile - first);
      for (const track of tracks) {
        this.cache.set(chunkKey(level, tile, track.place), chunks?.get(track.listed) ?? EMPTY_CHUNK);
      }
    }
  }
}

/** Tracks of one kind can be asked for together. */
function kindOf(track: Track): number {
  return Number(track.isCounter) + 2 * Number(track.isUse) + 4 * Number(track.isCharged) + 8 * Number(track.isBand) + 16 * track.base;
}

/** How a counter is scaled: from 0, or its least value, to a round number above its greatest. */
export function counterScale(track: Track | undefined): { floor: number; ceiling: number } {
  if (!track) return { floor: 0, ceiling: 1 };
  return { floor: Math.min(track.least, 0), ceiling: Math.max(track.greatest, track.least, 1e-12) };
}

/** Places as the routes read them: `1,4-7`. */
export function placesText(places: readonly number[]): string {
  const ascending = [...places].sort((one, other) => one - other);
  const parts: string[] = [];
  for (let at = 0; at < ascending.length; ) {
    let last = at;
    while (last + 1 < ascending.length && ascending[last + 1] === ascending[last]! + 1) last += 1;
    parts.push(last > at ? `${ascending[at]!}-${ascending[last]!}` : `${ascending[at]!}`);
    at = last + 1;
  }
  return parts.join(",");
}

function* keysOf(tiles: { level: number; first: number; end: number }, tracks: readonly Track[]): Generator<string> {
  for (let tile = tiles.first; tile < tiles.end; tile += 1) {
    for (const track of tracks) yield chunkKey(tiles.level, tile, track.place);
  }
}

function sameTracks(some: readonly Track[], others: readonly Track[]): boolean {
  return some.length === others.length && some.every((track, place) => track === others[place]);
}

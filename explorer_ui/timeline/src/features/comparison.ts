/** Two profiles on one axis: tracks aligned by their ids, spans coloured by how much their name's mean changed. */

import type { NameTable } from "../data/names.js";
import { type DataSource, requestJson } from "../data/source.js";
import type { Origin } from "../data/tile_loader.js";
import type { ProfileSummary, Track } from "../data/track.js";

/** Places of the second profile's tracks begin here. */
const BASE_PLACES = 1 << 20;
/** Names whose mean changed by less count as the same, as a power of two. */
const SAME = 0.03;
const STEPS = [SAME, 0.2, 0.7];
const MIDDLE = 3;
/** Slot of what the other profile does not have. */
export const UNKNOWN_SLOT = 7;

interface Delta {
  readonly name: string;
  readonly new_ns: number;
  readonly base_ns: number;
}

export interface DeltasAnswer {
  readonly tracks: Readonly<Record<string, readonly Delta[]>>;
}

export class Comparison {
  readonly origin: Origin;
  isLoaded = false;
  private readonly slots = new Map<string, ReadonlyMap<number, number>>();
  private readonly ratios = new Map<string, ReadonlyMap<number, number>>();

  /** @param shiftNs How much later the other profile's time is at the same point of the axis; both begin there by default. */
  constructor(
    source: DataSource,
    private readonly summary: ProfileSummary,
    private readonly base: ProfileSummary,
    private readonly names: NameTable,
    shiftNs?: number,
  ) {
    this.origin = { source, params: { shift: String(Math.round(shiftNs ?? base.startNs - summary.startNs)) } };
  }

  /** The profile with the other one's tracks below those of the same id; what only that one has comes last. */
  both(): ProfileSummary {
    const { summary, base } = this;
    const byId = new Map(base.tracks.map((track) => [track.id, track]));
    const tracks = summary.tracks.flatMap((track) => {
      const other = byId.get(track.id);
      byId.delete(track.id);
      return other ? [track, this.baseTrack(other, track.headings)] : [track];
    });
    const left = [...byId.values()].map((track) => this.baseTrack(track, [`Only in ${base.name}`, ...track.headings]));
    const length = Math.max(summary.endNs - summary.startNs, base.endNs - base.startNs);
    return { ...summary, endNs: summary.startNs + length, tracks: [...tracks, ...left] };
  }

  /** Fetch what changed by how much. */
  async load(source: DataSource, signal: AbortSignal): Promise<void> {
    const answer = await requestJson<DeltasAnswer>(source, "deltas", { base: this.base.id }, signal);
    for (const [track, deltas] of Object.entries(answer.tracks)) {
      const ratios = deltas.map((delta) => [this.names.code(delta.name), delta.new_ns / delta.base_ns] as const);
      this.ratios.set(track, new Map(ratios));
      this.slots.set(track, new Map(ratios.map(([name, ratio]) => [name, deltaSlot(ratio)])));
    }
    this.isLoaded = true;
  }

  /** Slot of a name on a track; undefined while nothing is known. */
  slot(track: Track, name: number): number | undefined {
    if (!this.isLoaded) return undefined;
    return this.slots.get(idOf(track))?.get(name) ?? UNKNOWN_SLOT;
  }

  /** The mean of a name, as a multiple of what it is in the other profile. */
  ratio(track: Track, name: string): number | undefined {
    return this.ratios.get(idOf(track))?.get(this.names.code(name));
  }

  private baseTrack(track: Track, headings: readonly string[]): Track {
    return {
      ...track,
      place: BASE_PLACES + track.place,
      charged: track.charged && this.baseTrack(track.charged, headings),
      isBase: true,
      id: `base:${track.id}`,
      name: `↳ ${this.base.name}`,
      headings,
    };
  }
}

/** Slot of a ratio of means: 0 much faster, 3 the same, 6 much slower. */
export function deltaSlot(ratio: number): number {
  if (!Number.isFinite(ratio) || ratio <= 0) return UNKNOWN_SLOT;
  const power = Math.log2(ratio);
  const steps = STEPS.filter((step) => Math.abs(power) > step).length;
  return MIDDLE + Math.sign(power) * steps;
}

function idOf(track: Track): string {
  return track.isBase ? track.id.slice("base:".length) : track.id;
}

/** Profiles on one axis: tracks aligned by their ids, spans coloured by how much their name's mean changed. */

import type { NameTable } from "../data/names.js";
import { type DataSource, requestJson } from "../data/source.js";
import type { Origin } from "../data/tile_loader.js";
import type { ProfileSummary, Track } from "../data/track.js";

/** Places of another profile's tracks begin this far behind those of the one before it. */
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

/** A profile that another is compared with. */
export interface Base {
  readonly source: DataSource;
  readonly summary: ProfileSummary;
  /** How much later its time is at the same point of the axis, in ns; both begin there by default. */
  readonly shiftNs?: number | undefined;
}

/** How the mean of a name differs between a profile and one that it is compared with. */
export interface Change {
  /** The mean as a multiple of what it is in the other profile. */
  readonly ratio: number;
  /** What the other profile is called. */
  readonly base: string;
}

/** A profile beside all that it is compared with. */
export class Comparison {
  private readonly pairs: readonly Pair[];

  constructor(
    private readonly summary: ProfileSummary,
    bases: readonly Base[],
    names: NameTable,
  ) {
    this.pairs = bases.map((base, place) => new Pair(summary, base, place + 1, names));
  }

  get isLoaded(): boolean {
    return this.pairs.every((pair) => pair.isLoaded);
  }

  /** The profile with the others' tracks below those of the same id; what it does not have comes last. */
  all(): ProfileSummary {
    const { summary, pairs } = this;
    const own = new Set(summary.tracks.map((track) => track.id));
    const below = (track: Track): Track[] => pairs.flatMap((pair) => pair.counterpart(track) ?? []);
    const left = [...new Set(pairs.flatMap((pair) => pair.ids))].filter((id) => !own.has(id));
    const length = Math.max(summary.endNs - summary.startNs, ...pairs.map((pair) => pair.lengthNs));
    return {
      ...summary,
      endNs: summary.startNs + length,
      tracks: [
        ...summary.tracks.flatMap((track) => [track, ...below(track)]),
        ...left.flatMap((id) => pairs.flatMap((pair) => pair.alone(id) ?? [])),
      ],
    };
  }

  /** Where the data of another profile's track comes from. */
  originOf(track: Track): Origin {
    return this.pairOf(track).origin;
  }

  /** Fetch what changed by how much. */
  async load(source: DataSource, signal: AbortSignal): Promise<void> {
    await Promise.all(this.pairs.map((pair) => pair.load(source, signal)));
  }

  /** Slot of a name on a track, on the profile's own against the first that it is compared with; undefined while nothing is known. */
  slot(track: Track, name: number): number | undefined {
    return this.pairOf(track).slot(track, name);
  }

  /** How a name's mean changed against the profile of the track; on the profile's own track against each. */
  changes(track: Track, name: number): readonly Change[] {
    const pairs = track.base === 0 ? this.pairs : [this.pairOf(track)];
    return pairs.flatMap((pair) => {
      const ratio = pair.ratio(track, name);
      return ratio === undefined ? [] : [{ ratio, base: pair.name }];
    });
  }

  private pairOf(track: Track): Pair {
    return this.pairs[Math.max(track.base, 1) - 1]!;
  }
}

/** A profile beside one that it is compared with. */
class Pair {
  readonly origin: Origin;
  readonly name: string;
  isLoaded = false;
  private readonly byId: ReadonlyMap<string, Track>;
  private readonly slots = new Map<string, ReadonlyMap<number, number>>();
  private readonly ratios = new Map<string, ReadonlyMap<number, number>>();

  constructor(
    private readonly summary: ProfileSummary,
    private readonly base: Base,
    private readonly place: number,
    private readonly names: NameTable,
  ) {
    const shiftNs = base.shiftNs ?? base.summary.startNs - summary.startNs;
    this.origin = { source: base.source, params: { shift: String(Math.round(shiftNs)) } };
    this.name = base.summary.name;
    this.byId = new Map(base.summary.tracks.map((track) => [track.id, track]));
  }

  get ids(): readonly string[] {
    return [...this.byId.keys()];
  }

  get lengthNs(): number {
    return this.base.summary.endNs - this.base.summary.startNs;
  }

  /** The other profile's track of the same id, below that of the profile. */
  counterpart(track: Track): Track | undefined {
    const other = this.byId.get(track.id);
    return other && this.moved(other, `↳ ${this.name}`, track.headings);
  }

  /** A track that the profile does not have. */
  alone(id: string): Track | undefined {
    const other = this.byId.get(id);
    return other && this.moved(other, `${other.name} ↳ ${this.name}`, [`Not in ${this.summary.name}`, ...other.headings]);
  }

  async load(source: DataSource, signal: AbortSignal): Promise<void> {
    const answer = await requestJson<DeltasAnswer>(source, "deltas", { base: this.base.summary.id }, signal);
    for (const [track, deltas] of Object.entries(answer.tracks)) {
      const ratios = deltas.map((delta) => [this.names.code(delta.name), delta.new_ns / delta.base_ns] as const);
      this.ratios.set(track, new Map(ratios));
      this.slots.set(track, new Map(ratios.map(([name, ratio]) => [name, deltaSlot(ratio)])));
    }
    this.isLoaded = true;
  }

  slot(track: Track, name: number): number | undefined {
    if (!this.isLoaded) return undefined;
    return this.slots.get(ownId(track))?.get(name) ?? UNKNOWN_SLOT;
  }

  ratio(track: Track, name: number): number | undefined {
    return this.ratios.get(ownId(track))?.get(name);
  }

  private moved(track: Track, name: string, headings: readonly string[]): Track {
    return {
      ...track,
      place: this.place * BASE_PLACES + track.place,
      charged: track.charged && this.moved(track.charged, name, headings),
      base: this.place,
      id: `${prefix(this.place)}${track.id}`,
      name,
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

/** Id of a track in its own profile. */
function ownId(track: Track): string {
  return track.base === 0 ? track.id : track.id.slice(prefix(track.base).length);
}

function prefix(base: number): string {
  return `base ${base}:`;
}

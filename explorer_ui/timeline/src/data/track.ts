/** Tracks of a profile, as the route `tracks` lists them. */

/** Places of bands begin here. */
export const BAND_PLACES = 1 << 18;
/** Places of the use of engines begin this far behind those of their tracks. */
export const USE_PLACES = 1 << 17;
/** Places of charged twins begin this far behind those of their tracks. */
export const CHARGED_PLACES = 1 << 19;
/** A track that is busy for less of the range than this is idle. */
const IDLE_SHARE = 0.002;

/** One row of the timeline: spans at one or more depths, or samples of a counter. */
export interface Track {
  /** Names the track among all that are shown, also of other profiles. */
  readonly place: number;
  /** Place in its own profile's list; requests name tracks by it. */
  readonly listed: number;
  /** 0 for a track of the profile itself, n for one of the nth profile that it is compared with. */
  readonly base: number;
  /** Names the track in this profile, and in every profile of the same program. */
  readonly id: string;
  readonly level: string;
  readonly name: string;
  /** What it stands under, outermost first: process or rank, core, group. */
  readonly headings: readonly string[];
  readonly rank: number | null;
  readonly core: number | null;
  /** Machine that it ran on; "" where that is not known. */
  readonly host: string;
  readonly table: string;
  readonly spans: number;
  readonly depths: number;
  readonly startNs: number;
  readonly endNs: number;
  readonly unit: string;
  readonly isCounter: boolean;
  /** Whether it is the share of the time in which the engine listed at its place is active. */
  readonly isUse: boolean;
  /** Whether its pieces are charged time, which does not overlap, in place of the spans themselves. */
  readonly isCharged: boolean;
  /** Whether its pieces are findings or warnings, not spans of a table. */
  readonly isBand: boolean;
  /** The same track in charged time; null where time is not charged to its spans. */
  readonly charged: Track | null;
  /** Whether it has next to nothing in the range that the profile was opened on, or the host went to. */
  readonly isIdle: boolean;
  /** Of a counter: its least and greatest value. */
  readonly least: number;
  readonly greatest: number;
}

/** What is known of a profile before anything is drawn. */
export interface ProfileSummary {
  readonly id: string;
  readonly name: string;
  readonly isComplete: boolean;
  /** What all times count from, in ns of the profile's own clock; as text, for it may not fit a number. */
  readonly originNs: string;
  readonly startNs: number;
  readonly endNs: number;
  readonly tracks: readonly Track[];
}

/** What of a track lies in a range. */
export interface RangeUse {
  count: number;
  busy_share: number;
}

interface TrackAnswer {
  id: string;
  level: string;
  name: string;
  headings: string[];
  rank: number | null;
  core: number | null;
  table: string;
  spans: number;
  depths: number;
  start_ns: number;
  end_ns: number;
  unit: string;
  counter: boolean;
  host?: string;
  charged?: boolean;
  use?: boolean;
  in_range?: RangeUse | null;
  least: number;
  greatest: number;
}

/** A track of bands, as the route `bands` lists it. */
export type BandAnswer = TrackAnswer;

/** The answer of the route `tracks`. */
export interface TracksAnswer {
  profile: string;
  name: string;
  complete: boolean;
  origin_ns: string;
  start_ns: number;
  end_ns: number;
  tracks: TrackAnswer[];
}

/** What the route `tracks` answered, in the engine's words. */
export function readSummary(answer: TracksAnswer): ProfileSummary {
  return {
    id: answer.profile,
    name: answer.name,
    isComplete: answer.complete,
    originNs: answer.origin_ns,
    startNs: answer.start_ns,
    endNs: Math.max(answer.end_ns, answer.start_ns + 1),
    tracks: withUse(answer.tracks.map(readTrack), answer.tracks),
  };
}

/** The tracks with the use of engines among the counters of their core, before the others. */
function withUse(tracks: readonly Track[], answers: readonly TrackAnswer[]): Track[] {
  const found = [...tracks];
  for (const engine of tracks.filter((track) => answers[track.listed]!.use)) {
    const isOfCore = (track: Track): boolean => engine.headings.every((name, depth) => track.headings[depth] === name);
    const counter = found.findIndex((track) => isOfCore(track) && track.isCounter && !track.isUse);
    const at = counter >= 0 ? counter : found.map(isOfCore).lastIndexOf(true) + 1;
    found.splice(at, 0, useOf(engine));
  }
  return found;
}

function useOf(engine: Track): Track {
  return {
    ...engine,
    place: engine.place + USE_PLACES,
    id: `${engine.id}/use`,
    level: "counter",
    name: `${engine.name} active`,
    headings: [...engine.headings, "Counters"],
    depths: 1,
    unit: "%",
    isCounter: true,
    isUse: true,
    charged: null,
    least: 0,
    greatest: 100,
  };
}

/** Tracks of findings and warnings. */
export function readBands(answers: readonly BandAnswer[]): Track[] {
  return answers.map((answer, place) => ({ ...bareTrack(answer, place), place: BAND_PLACES + place, isBand: true }));
}

/** Whether a track with this in a range is idle there. */
export function isIdleIn(track: Track, use: RangeUse | undefined): boolean {
  if (track.isCounter && !track.isUse) return track.spans === 0 || (track.least === 0 && track.greatest === 0);
  return !use || use.busy_share < IDLE_SHARE;
}

function readTrack(answer: TrackAnswer, place: number): Track {
  const track = bareTrack(answer, place);
  const isIdle = answer.in_range === undefined ? isEmpty(track) : isIdleIn(track, answer.in_range ?? undefined);
  const told = { ...track, isIdle };
  const charged = { ...told, place: place + CHARGED_PLACES, depths: 1, isCharged: true };
  return answer.charged ? { ...told, charged } : told;
}

/** Whether a track has nothing at all, whatever the range. */
export function isEmpty(track: Track): boolean {
  return track.isCounter && !track.isUse ? isIdleIn(track, undefined) : track.spans === 0;
}

function bareTrack(answer: TrackAnswer, place: number): Track {
  return {
    place,
    listed: place,
    base: 0,
    id: answer.id,
    level: answer.level,
    name: answer.name,
    headings: answer.headings,
    rank: answer.rank,
    core: answer.core,
    host: answer.host ?? "",
    table: answer.table,
    spans: answer.spans,
    depths: Math.max(1, answer.depths),
    startNs: answer.start_ns,
    endNs: answer.end_ns,
    unit: answer.unit,
    isCounter: answer.counter,
    isUse: false,
    isCharged: false,
    isBand: false,
    charged: null,
    isIdle: false,
    least: answer.least,
    greatest: answer.greatest,
  };
}

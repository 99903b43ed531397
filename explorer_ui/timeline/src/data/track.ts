/** Tracks of a profile, as the route `tracks` lists them. */

/** One row of the timeline: spans at one or more depths, or samples of a counter. */
export interface Track {
  /** Names the track among all that are shown, also of a second profile. */
  readonly place: number;
  /** Place in its own profile's list; requests name tracks by it. */
  readonly listed: number;
  /** Whether it belongs to the profile that is compared with. */
  readonly isBase: boolean;
  /** Names the track in this profile, and in every profile of the same program. */
  readonly id: string;
  readonly level: string;
  readonly name: string;
  /** What it stands under, outermost first: process or rank, core, group. */
  readonly headings: readonly string[];
  readonly rank: number | null;
  readonly core: number | null;
  readonly table: string;
  readonly spans: number;
  readonly depths: number;
  readonly startNs: number;
  readonly endNs: number;
  readonly unit: string;
  readonly isCounter: boolean;
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
  least: number;
  greatest: number;
}

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
    tracks: answer.tracks.map(readTrack),
  };
}

function readTrack(answer: TrackAnswer, place: number): Track {
  return {
    place,
    listed: place,
    isBase: false,
    id: answer.id,
    level: answer.level,
    name: answer.name,
    headings: answer.headings,
    rank: answer.rank,
    core: answer.core,
    table: answer.table,
    spans: answer.spans,
    depths: Math.max(1, answer.depths),
    startNs: answer.start_ns,
    endNs: answer.end_ns,
    unit: answer.unit,
    isCounter: answer.counter,
    least: answer.least,
    greatest: answer.greatest,
  };
}

/** The costs of a document's lines as it reads now: lines of the profile followed to where they stand. */

import type { FileCosts, FunctionWork, LineWork, Preview, SourceText, Work } from "../server/answers";
import { followLines, splitLines } from "./line_map";

/** How sure it is that a cost belongs to its line. */
export type Freshness = "same" | "moved" | "unknown";

/** A line of the document with its cost; `line` counts from 0. */
export interface CostedLine {
  readonly line: number;
  readonly recordedLine: number;
  readonly work: LineWork;
  /** What the line is shown with: its own code's cost; in a library's file, its own. */
  readonly shown: Work;
  /** What it was shown with in the profile that this one is compared with; undefined where there is none. */
  readonly before?: Work;
}

/** A function with its cost; `line` is that of its `def`, from 0. */
export interface CostedFunction {
  readonly line: number;
  readonly work: FunctionWork;
}

/** What kernels take together, as captured and as the text reads now. */
export interface Prediction {
  readonly kernels: readonly string[];
  readonly beforeNs: number;
  readonly afterNs: number;
}

export interface PlacedCosts {
  /** Path of the file in the profile. */
  readonly path: string;
  readonly deviceNs: number;
  readonly freshness: Freshness;
  readonly lines: readonly CostedLine[];
  readonly functions: readonly CostedFunction[];
  /** Costed lines that the document no longer has. */
  readonly lost: number;
  /** The most that a line takes where heat is relative to more than this document's lines. */
  readonly hottestNs?: number;
  /** Lines have what they would cost: nothing was run with this text. */
  readonly predicted?: Prediction;
  /** Place now (from 0) of a line of the profile (from 1); undefined where it is gone. */
  place(recordedLine: number): number | undefined;
  /** Line of the profile (from 1) that stands at a place (from 0); undefined for a new line. */
  recorded(line: number): number | undefined;
}

/**
 * Place the costs of a file in a text.
 *
 * @param source The text that was captured; where the profile does not keep it, lines stay where they were.
 */
export function placeCosts(costs: FileCosts, source: SourceText | undefined, text: string): PlacedCosts {
  const now = splitLines(text);
  const before = source?.text == null ? undefined : splitLines(source.text);
  const places = before && followLines(before, now);
  const place = (recorded: number): number | undefined => {
    const found = places ? places[recorded - 1] : recorded - 1;
    return found !== undefined && found >= 0 && found < now.length ? found : undefined;
  };
  const backwards = new Map<number, number>();
  places?.forEach((line, index) => backwards.set(line, index + 1));
  const isOwn = costs.lines.some((work) => work.own_code.device_ns > 0);
  const lines = costs.lines
    .map((work) => ({ line: place(work.line), recordedLine: work.line, work, shown: isOwn ? work.own_code : work }))
    .filter((row): row is CostedLine => row.line !== undefined);
  const functions = costs.functions
    .map((work) => ({ line: place(work.line), work }))
    .filter((row): row is CostedFunction => row.line !== undefined);
  return {
    path: costs.path,
    deviceNs: costs.device_ns,
    freshness: freshness(before, now),
    lines,
    functions,
    lost: costs.lines.filter((work) => (isOwn ? work.own_code : work).device_ns > 0 && place(work.line) === undefined).length,
    place,
    recorded: (line) => (places ? backwards.get(line) : line + 1),
  };
}

const NOTHING: Work = {
  device_ns: 0, share: 0, backward_ns: 0, calls: 0, instructions: 0, hbm_bytes: 0, flops: 0, engine_ns: {},
};

const LINE_PARTS = ["own_code", "total"] as const;

/** Costs with the kernels as the text reads now: what they took is replaced by what they would take. */
export function predictCosts(costs: PlacedCosts, { kernels, before, after }: Preview): PlacedCosts {
  if (!before || !after) return costs;
  const deviceNs = costs.deviceNs - before.device_ns + after.device_ns;
  const isOwn = [...before.lines, ...after.lines].some(({ own_code: own }) => own.device_ns > 0);
  const captured = new Map(costs.lines.map((row) => [row.line, row]));
  const minus = new Map(before.lines.map((work) => [costs.place(work.line), work]));
  const plus = new Map(after.lines.map((work) => [work.line - 1, work]));
  const touched = new Set([...minus.keys(), ...plus.keys()].filter((line) => line !== undefined));
  const lines = [...new Set([...captured.keys(), ...touched])].map((line): CostedLine => {
    const row = captured.get(line);
    const recordedLine = row?.recordedLine ?? costs.recorded(line) ?? line + 1;
    const work = predictedLine(recordedLine, row?.work, minus.get(line), plus.get(line), deviceNs);
    const shown = isOwn ? work.own_code : work;
    return { line, recordedLine, work, shown, ...(touched.has(line) && { before: row?.shown ?? NOTHING }) };
  });
  const predicted = { kernels, beforeNs: before.device_ns, afterNs: after.device_ns };
  return { ...costs, deviceNs, predicted, lines: lines.sort((one, other) => one.line - other.line) };
}

function predictedLine(
  line: number,
  captured: LineWork | undefined,
  minus: LineWork | undefined,
  plus: LineWork | undefined,
  deviceNs: number,
): LineWork {
  const [own_code, total] = LINE_PARTS.map((part) => replaced(captured?.[part], minus?.[part], plus?.[part], deviceNs));
  return { ...replaced(captured, minus, plus, deviceNs), line, own_code: own_code!, total: total! };
}

/** Work without a part of it and with another; rounding leaves nothing below 0. */
function replaced(whole: Work = NOTHING, minus: Work = NOTHING, plus: Work = NOTHING, deviceNs: number): Work {
  const value = (name: "device_ns" | "backward_ns" | "calls" | "instructions" | "hbm_bytes" | "flops"): number =>
    Math.max(0, whole[name] - minus[name] + plus[name]);
  const engines = new Set([whole, minus, plus].flatMap(({ engine_ns: times }) => Object.keys(times)));
  const time = (engine: string): number =>
    Math.max(0, (whole.engine_ns[engine] ?? 0) - (minus.engine_ns[engine] ?? 0) + (plus.engine_ns[engine] ?? 0));
  const device_ns = value("device_ns");
  return {
    device_ns,
    share: deviceNs > 0 ? Math.min(1, device_ns / deviceNs) : 0,
    backward_ns: value("backward_ns"),
    calls: value("calls"),
    instructions: value("instructions"),
    hbm_bytes: value("hbm_bytes"),
    flops: value("flops"),
    engine_ns: Object.fromEntries([...engines].map((engine) => [engine, time(engine)])),
  };
}

/** Costs with what each line cost in another profile; lines that cost something only there are added. */
export function compareCosts(costs: PlacedCosts, base: PlacedCosts): PlacedCosts {
  const before = new Map(base.lines.map(({ line, shown }) => [line, shown]));
  const known = new Set(costs.lines.map(({ line }) => line));
  const gone = base.lines
    .filter(({ line, shown }) => !known.has(line) && shown.device_ns > 0)
    .map(({ line, shown }) => {
      const recordedLine = costs.recorded(line) ?? line + 1;
      const work = { ...NOTHING, line: recordedLine, own_code: NOTHING, total: NOTHING };
      return { line, recordedLine, work, shown: NOTHING, before: shown };
    });
  const lines = costs.lines.map((row) => ({ ...row, before: before.get(row.line) ?? NOTHING }));
  return { ...costs, lines: [...lines, ...gone].sort((one, other) => one.line - other.line) };
}

function freshness(before: readonly string[] | undefined, now: readonly string[]): Freshness {
  if (!before) return "unknown";
  return before.length === now.length && before.every((line, index) => line === now[index]) ? "same" : "moved";
}

/** Lines by falling cost. */
export function hottestFirst<T extends CostedLine>(lines: readonly T[]): T[] {
  return lines
    .filter(({ shown }) => shown.device_ns > 0)
    .sort((one, other) => other.shown.device_ns - one.shown.device_ns || one.line - other.line);
}

/** The next hotter-to-colder line after the one that is here; the hottest where it is none of them. */
export function nextHottest<T extends CostedLine>(lines: readonly T[], isHere: (line: T) => boolean): T | undefined {
  const ranked = hottestFirst(lines);
  const here = ranked.findIndex(isHere);
  return ranked[(here + 1) % Math.max(ranked.length, 1)];
}

/** Findings of the advice and what-if gains in words. */

import type { Finding, Gain } from "../server/answers";
import { duration, percent } from "./quantities";

const STRONG_GAIN = 0.1;

/** "Gain: 33.1 µs of the program (2.3 %)". */
export function gainText(finding: Finding): string {
  if (finding.gain_ns === null) return "Gain: not simulated";
  return `Gain: ${duration(Math.max(0, finding.gain_ns))} of the program (${percent(finding.gain)})`;
}

/** What `neuron-profile fix --json` says of an edit. */
export interface Measured {
  readonly rule: string;
  readonly line: number;
  readonly measured_ns: number;
  readonly before_ns: number;
  readonly values_equal: boolean;
  readonly values_compared: number;
}

/** "Measured: 396 µs (10.1 %), 1,312,260 values equal". */
export function measuredText({ measured_ns: saved, before_ns: before, values_equal, values_compared }: Measured): string {
  const share = before > 0 ? ` (${percent(saved / before)})` : "";
  const gain = saved >= 0 ? `${duration(saved)}${share}` : `${duration(-saved)} slower`;
  const count = values_compared.toLocaleString("en-US");
  return `Measured: ${gain}, ${values_compared === 0 ? "no values compared" : `${count} values ${values_equal ? "equal" : "differ"}`}`;
}

/** Whether two findings are one: of the same rule at the same place. */
export function isSameFinding(one: Finding, other: Finding): boolean {
  const [a, b] = [one.place, other.place];
  return one.rule === other.rule && a.file === b.file && a.line === b.line && a.operation === b.operation;
}

/** Whether a finding deserves a warning. */
export function isStrong(finding: Finding): boolean {
  return finding.gain >= STRONG_GAIN;
}

/** What was found, what to change, what it gives. */
export function findingText(finding: Finding): string {
  return `${finding.title}. ${finding.change} ${gainText(finding)}`;
}

/** Name and value of each number that shows it. */
export function evidenceRows(finding: Finding): [string, string][] {
  return Object.entries(finding.evidence).map(([name, value]) => [words(name), evidenceValue(name, value)]);
}

/** "With hbm_bandwidth=2x: program 1.44 ms → 1.30 ms, saves 9.7 %; device 526 µs → 390 µs". */
export function whatIfText(gain: Gain): string {
  return (
    `With ${gain.change}: program ${duration(gain.total_ns)} → ${duration(gain.total_after_ns)}, ` +
    `saves ${percent(gain.total_gain)}; device ${duration(gain.device_ns)} → ${duration(gain.device_after_ns)}`
  );
}

function words(name: string): string {
  return name.replace(/_(ns|share|percent)$/, "").replaceAll("_", " ");
}

function evidenceValue(name: string, value: unknown): string {
  if (typeof value !== "number") return typeof value === "string" ? value : JSON.stringify(value);
  if (name.endsWith("_ns")) return duration(value);
  if (name.endsWith("_share") || name.endsWith("_percent")) return percent(value);
  return value.toLocaleString("en-US");
}

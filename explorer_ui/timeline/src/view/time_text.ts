/** Writes times and quantities for people. */

const UNITS: readonly (readonly [number, string])[] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** A duration with about four digits: `12.34 µs`. */
export function durationText(durationNs: number): string {
  const size = Math.abs(durationNs);
  for (const [unitNs, name] of UNITS) {
    if (size >= unitNs) return `${digits(durationNs / unitNs)} ${name}`;
  }
  return durationNs === 0 ? "0 ns" : `${digits(durationNs)} ns`;
}

/** A difference with its sign: `−1.200 ms`. */
export function signedText(differenceNs: number): string {
  return `${differenceNs < 0 ? "−" : "+"}${durationText(Math.abs(differenceNs))}`;
}

/** A time on an axis whose ticks are so far apart: no more digits than tell ticks apart. */
export function tickText(timeNs: number, stepNs: number): string {
  const size = Math.max(Math.abs(timeNs), stepNs);
  const [unitNs, name] = UNITS.find(([unit]) => size >= unit) ?? [1, "ns"];
  const decimals = Math.min(Math.max(Math.ceil(-Math.log10(stepNs / unitNs) - 1e-9), 0), 12);
  return `${(timeNs / unitNs).toFixed(decimals)} ${name}`;
}

/** Decimals of an axis from which on times are written relative to one that stands at its left. */
const MANY_DECIMALS = 4;

/** What ticks are counted from: 0, or a round time at the left where times since 0 would be long to read. */
export function axisBase(startNs: number, endNs: number, stepNs: number): number {
  const [unitNs] = UNITS.find(([unit]) => Math.max(endNs, stepNs) >= unit) ?? [1];
  if (stepNs * 10 ** (MANY_DECIMALS - 1) > unitNs || startNs <= 0) return 0;
  const block = 10 ** Math.ceil(Math.log10(endNs - startNs));
  return Math.floor(startNs / block) * block;
}

/** A time to the nanosecond, in the largest unit that it fills: `1.234567890 s`. */
export function exactText(timeNs: number): string {
  const size = Math.abs(timeNs);
  const [unitNs, name] = UNITS.find(([unit]) => size >= unit) ?? [1, "ns"];
  const decimals = Math.round(Math.log10(unitNs));
  return `${(timeNs / unitNs).toFixed(decimals)} ${name}`;
}

/** A number of things: `12,345`. */
export function countText(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

/** A share from 0 to 1 in percent. */
export function shareText(share: number): string {
  const percent = share * 100;
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}

const PREFIXES = ["", "k", "M", "G", "T", "P"] as const;

/** A counter's value with its unit: `1.2 GB/s`, `87 %`. */
export function valueText(value: number, unit: string): string {
  if (unit === "fraction") return shareText(value);
  let rest = Math.abs(value);
  let step = 0;
  while (rest >= 1000 && step < PREFIXES.length - 1) {
    rest /= 1000;
    step += 1;
  }
  const short = unit.replace("bytes", "B");
  return `${value < 0 ? "-" : ""}${digits(rest)} ${PREFIXES[step] ?? ""}${short}`.trimEnd();
}

function digits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : size === 0 ? 0 : 4).replace(/\.0+$/, "");
}

/** Times at which to draw ticks, in steps of 1, 2 or 5 times a power of ten, about so many pixels apart. */
export function ticks(startNs: number, endNs: number, nsPerPixel: number, apart = 110): { stepNs: number; first: number } {
  const wanted = Math.max(nsPerPixel * apart, 1e-3);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const stepNs = Math.max((([1, 2, 5, 10] as const).find((factor) => factor * power >= wanted) ?? 10) * power, 1);
  return { stepNs, first: Math.floor(Math.min(startNs, endNs) / stepNs) };
}

/** Quantities as people read them: three significant digits and a unit. */

const TIMES: readonly (readonly [number, string])[] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
];
const BYTES: readonly (readonly [number, string])[] = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
];

const FLOPS: readonly (readonly [number, string])[] = [
  [1e15, "PFLOP"],
  [1e12, "TFLOP"],
  [1e9, "GFLOP"],
  [1e6, "MFLOP"],
  [1e3, "kFLOP"],
];

/** A time: "197 µs". */
export function duration(ns: number): string {
  return scaled(ns, TIMES, "ns");
}

/** A size, in powers of ten: "18.4 MB". */
export function bytes(count: number): string {
  return scaled(count, BYTES, "B");
}

/** Operations on floating-point numbers: "503 MFLOP". */
export function flops(count: number): string {
  return scaled(count, FLOPS, "FLOP");
}

/** A part of a whole as percent: "37.5 %". */
export function percent(share: number): string {
  const value = share * 100;
  return `${value !== 0 && Math.abs(value) < 0.05 ? "<0.1" : value.toFixed(1)} %`;
}

/** A count with separators: "1,201". */
export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

function scaled(value: number, units: readonly (readonly [number, string])[], smallest: string): string {
  const size = Math.abs(value);
  // Just below a unit, three digits would round up to 1000 of the smaller one.
  const unit = units.find(([scale]) => size >= scale * 0.9995);
  return unit ? `${digits(value / unit[0])} ${unit[1]}` : `${Math.round(value)} ${smallest}`;
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  return value.toFixed(size >= 9.995 ? 1 : 2);
}

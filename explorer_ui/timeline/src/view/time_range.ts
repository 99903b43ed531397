/** A stretch of time, in ns from the profile's origin. */
export interface TimeRange {
  readonly startNs: number;
  readonly endNs: number;
}

/** Shortest range that can be shown. */
export const SHORTEST_NS = 8;

/** Length of a range. */
export function lengthOf(range: TimeRange): number {
  return range.endNs - range.startNs;
}

/** A range scaled about one point of it, which stays where it is. */
export function zoomed(range: TimeRange, factor: number, aroundNs: number): TimeRange {
  return {
    startNs: aroundNs - (aroundNs - range.startNs) * factor,
    endNs: aroundNs + (range.endNs - aroundNs) * factor,
  };
}

/** A range moved by some time. */
export function moved(range: TimeRange, byNs: number): TimeRange {
  return { startNs: range.startNs + byNs, endNs: range.endNs + byNs };
}

/** A range kept long enough, no longer than the bounds with a margin, and inside them. */
export function within(range: TimeRange, bounds: TimeRange): TimeRange {
  const margin = lengthOf(bounds) * 0.02;
  const [low, high] = [bounds.startNs - margin, bounds.endNs + margin];
  const length = Math.min(Math.max(lengthOf(range), SHORTEST_NS), Math.max(high - low, SHORTEST_NS));
  const middle = (range.startNs + range.endNs) / 2;
  const wanted = lengthOf(range) === length ? range.startNs : middle - length / 2;
  const startNs = Math.min(Math.max(wanted, low), Math.max(high - length, low));
  return { startNs, endNs: startNs + length };
}

/** Whether two ranges are the same. */
export function equalRanges(one: TimeRange | null, other: TimeRange | null): boolean {
  return one === other || (one?.startNs === other?.startNs && one?.endNs === other?.endNs);
}

/** A range whose start is not after its end. */
export function ordered(fromNs: number, toNs: number): TimeRange {
  return { startNs: Math.min(fromNs, toNs), endNs: Math.max(fromNs, toNs) };
}

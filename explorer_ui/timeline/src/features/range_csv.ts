/** The sums of a range as a CSV file: bare numbers in base units, tracks first, then names on one of them. */

export interface TrackSum {
  readonly track: number;
  readonly count: number;
  readonly busy_share: number;
  readonly span_ns: number;
}

export interface NameSum {
  readonly name: string;
  /** Spans; null where only charged time is known. */
  readonly count: number | null;
  readonly time_ns: number;
  readonly longest_ns: number | null;
}

const HEADINGS = ["track", "name", "spans", "busy_share", "time_ns", "longest_ns"];

/** @param nameOf Name of a track by its place. */
export function rangeCsv(
  tracks: readonly TrackSum[],
  nameOf: (place: number) => string,
  names: readonly NameSum[],
  namesTrack: string,
): string {
  const rows: (string | number)[][] = [
    HEADINGS,
    ...tracks.map((sum) => [nameOf(sum.track), "", sum.count, sum.busy_share, sum.span_ns, ""]),
    ...names.map((sum) => [namesTrack, sum.name, sum.count ?? "", "", sum.time_ns, sum.longest_ns ?? ""]),
  ];
  return `${rows.map((row) => row.map(field).join(",")).join("\r\n")}\r\n`;
}

/** A field; a text that a spreadsheet would run as a formula is marked as text. */
function field(value: string | number): string {
  if (typeof value === "number") return String(value);
  const safe = /^[-=+@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

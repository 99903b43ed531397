/** Where the lines of a text went when it was edited. */

const MOST_EDITS = 2000;

/** For each old line (from 0), its place in the new text (from 0), or -1 where it is gone. */
export function followLines(before: readonly string[], after: readonly string[]): Int32Array {
  const places = new Int32Array(before.length).fill(-1);
  const start = commonPrefix(before, after);
  const end = commonSuffix(before, after, start);
  for (let line = 0; line < start; line += 1) places[line] = line;
  for (let line = 1; line <= end; line += 1) places[before.length - line] = after.length - line;
  const old = before.slice(start, before.length - end);
  const now = after.slice(start, after.length - end);
  for (const [from, to] of shortestEdit(old, now)) places[start + from] = start + to;
  followMoves(before, after, places);
  return places;
}

/** Lines of a text, whatever ends them. */
export function splitLines(text: string): string[] {
  return text.split(/\r\n|\r|\n/);
}

function commonPrefix(before: readonly string[], after: readonly string[]): number {
  const most = Math.min(before.length, after.length);
  let length = 0;
  while (length < most && before[length] === after[length]) length += 1;
  return length;
}

function commonSuffix(before: readonly string[], after: readonly string[], prefix: number): number {
  const most = Math.min(before.length, after.length) - prefix;
  let length = 0;
  while (length < most && before[before.length - 1 - length] === after[after.length - 1 - length]) length += 1;
  return length;
}

/**
 * Pairs of equal lines along a shortest edit (Myers, "An O(ND) Difference Algorithm", 1986).
 * None where the texts have little in common: moves are followed then.
 */
function shortestEdit(before: readonly string[], after: readonly string[]): [number, number][] {
  const most = Math.min(before.length + after.length, MOST_EDITS);
  const offset = most + 1;
  const farthest = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(farthest.slice(offset - edits - 1, offset + edits + 2));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down =
        diagonal === -edits ||
        (diagonal !== edits && farthest[offset + diagonal - 1]! < farthest[offset + diagonal + 1]!);
      let x = down ? farthest[offset + diagonal + 1]! : farthest[offset + diagonal - 1]! + 1;
      let y = x - diagonal;
      while (x < before.length && y < after.length && before[x] === after[y]) {
        x += 1;
        y += 1;
      }
      farthest[offset + diagonal] = x;
      if (x >= before.length && y >= after.length) return backtrack(trace, before.length, after.length);
    }
  }
  return [];
}

function backtrack(
  trace: readonly Int32Array[],
  lengthBefore: number,
  lengthAfter: number,
): [number, number][] {
  const pairs: [number, number][] = [];
  let [x, y] = [lengthBefore, lengthAfter];
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    // Entry `edits + 1 + d` of a trace is the farthest x on diagonal d before this edit.
    const reached = (diagonal: number): number => trace[edits]![edits + 1 + diagonal]!;
    const diagonal = x - y;
    const down = diagonal === -edits || (diagonal !== edits && reached(diagonal - 1) < reached(diagonal + 1));
    const previous = down ? diagonal + 1 : diagonal - 1;
    const fromX = edits === 0 ? 0 : reached(previous);
    const fromY = edits === 0 ? 0 : fromX - previous;
    // The edit itself takes one step down or right; what follows it are equal lines.
    const firstX = edits === 0 || down ? fromX : fromX + 1;
    for (; x > firstX; x -= 1, y -= 1) pairs.push([x - 1, y - 1]);
    [x, y] = [fromX, fromY];
  }
  return pairs;
}

/** Lines that a shortest edit lost, but which stand elsewhere once, were moved. */
function followMoves(before: readonly string[], after: readonly string[], places: Int32Array): void {
  const taken = new Set(places);
  const lost = uniqueLines(before, (line) => places[line] === -1);
  const fresh = uniqueLines(after, (line) => !taken.has(line));
  for (const [text, line] of lost) {
    const place = fresh.get(text);
    if (place !== undefined && text.trim().length > 1) places[line] = place;
  }
}

/** Texts that occur once among the chosen lines, and where. */
function uniqueLines(lines: readonly string[], chosen: (line: number) => boolean): Map<string, number> {
  const places = new Map<string, number>();
  const repeated = new Set<string>();
  lines.forEach((text, line) => {
    if (!chosen(line)) return;
    if (places.has(text)) repeated.add(text);
    places.set(text, line);
  });
  for (const text of repeated) places.delete(text);
  return places;
}

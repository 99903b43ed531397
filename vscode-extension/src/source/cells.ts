/** Which captured text is that of a notebook's cell. Profiles name cells as files: `train.ipynb#3`, or by a number of Jupyter's. */

import { followLines, splitLines } from "./line_map";

const NUMBERED = /^(.+\.ipynb)#(\d+)$/;
const UNNUMBERED = /^<ipython-input-.+>$|\/ipykernel_\d+\/\d+\.py$/;
/** Of a cell that was edited since, so much must still be there. */
const LEAST_ALIKE = 0.5;

/** The notebook and the code cell, from 1, that a file of a profile is; undefined where its name does not say it. */
export function numberedCell(path: string): { readonly notebook: string; readonly number: number } | undefined {
  const found = NUMBERED.exec(path);
  return found ? { notebook: found[1]!, number: Number(found[2]) } : undefined;
}

/** Whether a file of a profile is a cell of some notebook or shell, which only its text tells. */
export function isUnnumberedCell(path: string): boolean {
  return UNNUMBERED.test(path);
}

/** Whether a file of a profile is a cell. */
export function isCell(path: string): boolean {
  return numberedCell(path) !== undefined || isUnnumberedCell(path);
}

/** Lines of a cell for comparing: without the magic above it, with each line magic as what IPython makes of it. */
export function comparableLines(text: string): string[] {
  const lines = splitLines(text).map((line) => (/^\s*([%!]|get_ipython\(\))/.test(line) ? "%" : line.trimEnd()));
  while (lines.length > 0 && lines.at(-1) === "") lines.pop();
  return hasCellMagic(text) ? lines.slice(1) : lines;
}

/** Whether a cell's first line is a magic for all of it: what runs begins below. */
export function hasCellMagic(text: string): boolean {
  return text.startsWith("%%");
}

/** How much two cells have in common, from 0 to 1. */
export function likeness(one: string, other: string): number {
  const [before, now] = [comparableLines(one), comparableLines(other)];
  if (before.length === now.length && before.every((line, index) => line === now[index])) return 1;
  const kept = followLines(before, now).filter((place, line) => place >= 0 && before[line] !== "").length;
  const filled = Math.max(...[before, now].map((lines) => lines.filter((line) => line !== "").length));
  return filled === 0 ? 0 : Math.min(0.999, kept / filled);
}

/** The captured cell that a cell is: the one with the same text, else the most alike; undefined where none is alike. */
export function captureOf<T extends { readonly text: string | null }>(cell: string, captured: readonly T[]): T | undefined {
  const rated = captured.map((each) => ({ each, alike: each.text === null ? 0 : likeness(each.text, cell) }));
  const best = rated.reduce<(typeof rated)[number] | undefined>(
    (most, rate) => (most !== undefined && most.alike > rate.alike ? most : rate), // of equal ones the last that ran
    undefined,
  );
  return best && best.alike >= LEAST_ALIKE ? best.each : undefined;
}

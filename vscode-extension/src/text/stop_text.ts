/** What is said of the place at which the debugger will stop. */

import type { Stop } from "../server/answers";
import { duration } from "./quantities";

/** One sentence: which execution of a line, and how slow it was. */
export function stopText({ number, executions, cost_ns, typical_ns }: Stop, file: string, line: number): string {
  const place = `${file}:${line}`;
  if (number === 0) return `The debugger stops where ${place} is run first: the profile does not tell its executions apart`;
  const which = executions === 1 ? "its only execution" : `execution ${number} of ${executions}`;
  const typical = executions === 1 ? "" : `, typical: ${duration(typical_ns)}`;
  return `The debugger stops at ${place}, ${which} (${duration(cost_ns)}${typical})`;
}

/** The columns of a span's row for people: what is told in words, and what is folded away. */

import { countText, durationText, valueText } from "../view/time_text.js";

export interface SpanColumns {
  readonly told: readonly (readonly [string, string])[];
  readonly folded: readonly (readonly [string, string])[];
}

/** Columns that say what the panel's head says already. */
const SAID = new Set(["start_ts", "end_ts", "duration_ns", "source_file", "source_line", "process_idx"]);
/** Columns that are told in words; the others are folded away. */
const WORDS: Readonly<Record<string, string>> = {
  change: "What to change",
  opcode: "Instruction",
  operands: "Operands",
  evt_wait_time_ns: "Waited for engines",
  dma_wait_time_ns: "Waited for DMA",
  throttle_time_ns: "Throttled",
  hlo_opcode: "HLO operation",
  framework_name: "Operation",
  shape: "Shape",
  bytes: "Bytes",
  transfer_size: "Bytes",
  dma_size: "Bytes",
  elements: "Elements",
  dtype: "Type",
  variable: "Tensor",
  queue_name: "Queue",
  op: "Kind",
  kind: "Kind",
  model_flops: "FLOP of the model",
  hbm_read_bytes: "Read from HBM",
  hbm_write_bytes: "Written to HBM",
};

/** Columns that say something, in words where there are any; a word that is `said` or told before is not told again. */
export function spanColumns(columns: Readonly<Record<string, unknown>>, said: readonly string[]): SpanColumns {
  const words = new Set(said);
  const told: [string, string][] = [];
  const folded: [string, string][] = [];
  for (const [name, value] of Object.entries(columns)) {
    if (SAID.has(name) || value === "" || value === 0 || value === false || value === null) continue;
    const word = WORDS[name];
    if (word === undefined || words.has(word)) folded.push([name, columnText(name, value)]);
    else {
      told.push([word, columnText(name, value)]);
      words.add(word);
    }
  }
  return { told, folded };
}

/** A column's value with its unit. */
export function columnText(name: string, value: unknown): string {
  if (typeof value !== "number") return String(value);
  if (name.endsWith("_ns")) return durationText(value);
  if (name.endsWith("_bytes") || WORDS[name] === "Bytes") return valueText(value, "B");
  if (Number.isInteger(value) && !name.endsWith("id") && name !== "pc") return countText(value);
  return String(value);
}

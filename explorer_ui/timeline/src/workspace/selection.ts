/** What is chosen: an operation, a module or a line, named by its key, or a span of the timeline. */

import type { Highlight } from "../view/view_state.js";

export type Kind = "operation" | "module" | "line";

export interface Chosen {
  readonly kind: Kind;
  readonly key: string;
}

/** What belongs to a selection, as the server answers: device time in ns by the key of each thing. */
export interface Related {
  readonly title: string;
  readonly device_ns: number;
  readonly total_ns: number;
  readonly operations: Readonly<Record<string, number>>;
  readonly modules: Readonly<Record<string, number>>;
  readonly lines: Readonly<Record<string, number>>;
}

const KINDS: readonly Kind[] = ["operation", "module", "line"];
const LIT_BY: Readonly<Record<Kind, Highlight["by"]>> = { operation: "operation", module: "layer", line: "line" };

/** "operation:aten::mm" as what it names; null where it names nothing. */
export function parseChosen(text: string | null): Chosen | null {
  const kind = KINDS.find((one) => text?.startsWith(`${one}:`));
  const key = kind && text ? text.slice(kind.length + 1) : "";
  return kind && key ? { kind, key } : null;
}

export function chosenText(chosen: Chosen): string {
  return `${chosen.kind}:${chosen.key}`;
}

/** How the timeline lights it up. */
export function highlightOf(chosen: Chosen): Highlight {
  return { by: LIT_BY[chosen.kind], value: chosen.key, label: shortTitle(chosen) };
}

/** Its name as a person says it. */
export function shortTitle({ kind, key }: Chosen): string {
  return kind === "line" ? key.slice(key.lastIndexOf("/") + 1) : key;
}

/** File and line of a line's key. */
export function placeOf(chosen: Chosen): { file: string; line: string } | null {
  const colon = chosen.key.lastIndexOf(":");
  return chosen.kind === "line" && colon > 0 ? { file: chosen.key.slice(0, colon), line: chosen.key.slice(colon + 1) } : null;
}

/** Whether a thing that a panel shows belongs to what is chosen. */
export function isRelated(shown: Chosen, chosen: Chosen, related: Related | null): boolean {
  if (shown.kind === chosen.kind && (shown.key === chosen.key || isInside(shown, chosen))) return true;
  if (!related) return false;
  const keys = { operation: related.operations, module: related.modules, line: related.lines }[shown.kind];
  if (Object.hasOwn(keys, shown.key)) return true;
  return shown.kind === "module" && Object.keys(keys).some((key) => key.startsWith(`${shown.key}/`));
}

function isInside(shown: Chosen, chosen: Chosen): boolean {
  return chosen.kind === "module" && shown.key.startsWith(`${chosen.key}/`);
}

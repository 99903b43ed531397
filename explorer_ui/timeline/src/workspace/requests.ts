/** What panels ask the server for: their contents at an address, and what belongs to a selection. */

import { SCOPE } from "./address.js";
import type { PanelInfo } from "./links.js";
import { type Chosen, chosenText, type Related } from "./selection.js";

interface Dash {
  set_props(id: string | object, props: object): void;
}

declare global {
  interface Window {
    dash_clientside?: Dash & { explorer?: object; no_update?: unknown };
  }
}

/** Parameters that a panel's content depends on, as the address under which the server draws it. */
export function contentAddress(path: string, panel: PanelInfo, params: URLSearchParams): string {
  const asked = new URLSearchParams({ panel: panel.name });
  for (const name of ["profile", ...SCOPE, ...panel.parameters]) {
    const value = params.get(name);
    if (value) asked.set(name, value);
  }
  return `${path}?${asked.toString()}`;
}

/** What tells whether a panel shows what an address asks for. */
export function contentKey(panel: PanelInfo, params: URLSearchParams): string {
  const depended = panel.parameters.filter((name) => !panel.kept.includes(name));
  const scope = panel.name === "timeline" && !params.has("compare") ? [] : SCOPE; // it moves there by itself
  return JSON.stringify(["profile", ...scope, ...depended].map((name) => params.get(name)));
}

/** Ask for a panel's content; it comes when it is there. */
export function requestContent(panel: string, address: string): void {
  window.dash_clientside?.set_props({ type: "panel-at", name: panel }, { data: address });
}

/** What belongs to a selection in the scope of an address. */
export async function requestRelated(root: string, chosen: Chosen, params: URLSearchParams, signal: AbortSignal): Promise<Related> {
  const asked = new URLSearchParams({ sel: chosenText(chosen) });
  for (const name of SCOPE) {
    const value = params.get(name);
    if (value) asked.set(name, value);
  }
  const answer = await fetch(`${root}/workspace/related/${encodeURIComponent(params.get("profile") ?? "")}?${asked.toString()}`, { signal });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return (await answer.json()) as Related;
}

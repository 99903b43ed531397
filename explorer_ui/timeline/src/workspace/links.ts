/** What a link means in the workspace: a change of its address, and the panel that shows it. */

import { type Changes, SCOPE } from "./address.js";
import { chosenText } from "./selection.js";

export interface PanelInfo {
  readonly name: string;
  readonly title: string;
  /** The page that it shows; "" where it has none. */
  readonly path: string;
  /** Parameters of the address that are its own. */
  readonly parameters: readonly string[];
  /** Those of them that the panel keeps by itself once it is there: it is not drawn anew when they change. */
  readonly kept: readonly string[];
}

export interface Meaning {
  readonly changes: Changes;
  /** The panel to bring to the front. */
  readonly panel: string | null;
}

/** Parameters that are the timeline's alone. */
const SEARCHED_MODULE = "layer=";

/**
 * What a link of a panel means; null where it leads out of the workspace.
 *
 * @param path The workspace's own path, behind what a proxy puts before it.
 * @param from The panel in which the link stands; null for what stands around the panels.
 */
export function meaningOf(url: URL, root: string, path: string, panels: readonly PanelInfo[], from: PanelInfo | null): Meaning | null {
  const target = url.pathname.slice(root.length);
  if (target === path) return { changes: ownChanges(url.searchParams, from), panel: null };
  const panel = panels.find((one) => one.path === target);
  if (!panel) return null;
  return { changes: { ...scopeChanges(url.searchParams), ...panelChanges(url.searchParams, panel) }, panel: panel.name };
}

/** A link within a panel names all of that panel's parameters; what stands around the panels leads to another scope only. */
function ownChanges(params: URLSearchParams, from: PanelInfo | null): Changes {
  return { ...Object.fromEntries((from?.parameters ?? []).map((name) => [name, params.get(name)])), ...scopeChanges(params) };
}

function scopeChanges(params: URLSearchParams): Changes {
  const changes: Record<string, string | null> = {};
  const now = new URLSearchParams(location.search);
  let isChanged = false;
  for (const name of SCOPE) {
    changes[name] = params.get(name);
    if (now.get(name) !== changes[name]) isChanged = true;
  }
  return isChanged ? { ...changes, t: null, selection: null } : {};
}

function panelChanges(params: URLSearchParams, panel: PanelInfo): Changes {
  const file = params.get("file");
  const line = params.get("line");
  if (panel.name === "source" && file) {
    const sel = line ? chosenText({ kind: "line", key: `${file}:${line}` }) : null;
    return { file, line, ...(sel && { sel, span: null }) };
  }
  const search = params.get("search");
  if (panel.name === "timeline") {
    if (search?.startsWith(SEARCHED_MODULE)) {
      return { sel: chosenText({ kind: "module", key: search.slice(SEARCHED_MODULE.length) }), span: null };
    }
    return { ...(search && { search }), ...(params.has("compare") && { compare: params.get("compare") }) };
  }
  return Object.fromEntries(panel.parameters.map((name) => [name, params.get(name)]));
}

/** The view in the page's address, so that a link reproduces it; the server reads it back. */

import type { TimelineView } from "../view/view_state.js";

/** The query of an address with the parts of a view in it; what is as by default is left out. */
export function withView(query: string, view: TimelineView): string {
  const params = new URLSearchParams(query);
  const set = (name: string, value: string | null): void => {
    if (value === null) params.delete(name);
    else params.set(name, value);
  };
  const list = (values: readonly unknown[]): string | null => (values.length > 0 ? JSON.stringify(values) : null);
  set("start_ns", view.range ? String(Math.max(Math.floor(view.range.startNs), 0)) : null);
  set("end_ns", view.range ? String(Math.max(Math.ceil(view.range.endNs), 1)) : null);
  set("selection", view.selection ? list([Math.round(view.selection.startNs), Math.round(view.selection.endNs)]) : null);
  set("span", view.span ? JSON.stringify(view.span) : null);
  set("highlight", view.highlight ? JSON.stringify(view.highlight) : null);
  set("pinned", list(view.pinned));
  set("collapsed", list(view.collapsed));
  set("expanded", list(view.expanded));
  set("markers", list(view.markers));
  set("search", view.search || null);
  set("group", view.grouping === "process" ? null : view.grouping);
  return params.toString();
}

/** Put a view into the address of this page, without going anywhere. */
export function writeAddress(view: TimelineView): void {
  const query = withView(location.search, view);
  history.replaceState(history.state, "", `${location.pathname}${query ? `?${query}` : ""}`);
}

/** An address with `{file}` and `{line}` filled in. */
export function sourceAddress(template: string, file: string, line: number): string {
  return template.replace("{file}", encodeURIComponent(file)).replace("{line}", String(line));
}

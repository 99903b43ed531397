/** The state of the workspace: what stands in the page's address, and nothing else. Back and forward walk through it. */

/** Changes of parameters; null takes one out. */
export type Changes = Readonly<Record<string, string | null>>;

/** What of a view merges into one entry of the history while it keeps moving. */
const MERGE_MS = 600;
/** Parameters that name what all figures are of. */
export const SCOPE = ["start_ns", "end_ns", "scope"] as const;

/** The address of this page as parameters. */
export function current(): URLSearchParams {
  return new URLSearchParams(location.search);
}

/** The query of an address with changes in it; empty values are left out. */
export function withChanges(query: string, changes: Changes): string {
  const params = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  }
  return params.toString();
}

export class History {
  private mergedAt = -Infinity;

  constructor(private readonly announce: () => void) {}

  /** Go to a changed address, as an entry of the history. */
  push(changes: Changes): void {
    this.mergedAt = -Infinity;
    this.go(changes, "push");
  }

  /** The same for what moves continuously: one entry for as long as it does not rest. */
  move(changes: Changes): void {
    const now = performance.now();
    const kind = now - this.mergedAt < MERGE_MS ? "replace" : "push";
    this.mergedAt = now;
    this.go(changes, kind);
  }

  /** Note something in the entry that is there. */
  note(changes: Changes): void {
    this.go(changes, "replace");
  }

  private go(changes: Changes, kind: "push" | "replace"): void {
    const query = withChanges(location.search, changes);
    if (query === location.search.replace(/^\?/, "")) return;
    const address = `${location.pathname}${query ? `?${query}` : ""}`;
    if (kind === "push") history.pushState({}, "", address);
    else history.replaceState(history.state, "", address);
    this.announce();
  }
}

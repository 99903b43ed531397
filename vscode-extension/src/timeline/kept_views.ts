/** Where the user was in each timeline, kept by the extension: the workbench writes a page's own state only seconds later. */

import type * as vscode from "vscode";

const KEY = "neuron.views";
const MOST_KEPT = 40;

/** A place in a timeline, as its page tells it. */
export interface KeptView {
  /** Name that the page gave itself. */
  readonly page: string;
  /** Folder of the profile. */
  readonly profile: string;
  /** What the engine calls its view. */
  readonly view: Readonly<Record<string, unknown>>;
  /** When it was there, in ms since 1970. */
  readonly savedAt: number;
}

export class KeptViews {
  constructor(private readonly memory: vscode.Memento) {}

  /** The view of a page; of one that does not know its name any more, the last one of its profile. */
  of(profile: string, page: string | undefined): KeptView | undefined {
    const views = this.all().filter((kept) => kept.profile === profile);
    return views.find((kept) => kept.page === page) ?? (page === undefined ? views[0] : undefined);
  }

  async keep(kept: KeptView): Promise<void> {
    await this.memory.update(KEY, [kept, ...this.without(kept.page)].slice(0, MOST_KEPT));
  }

  /** Forget a page that the user closed. */
  async forget(page: string): Promise<void> {
    await this.memory.update(KEY, this.without(page));
  }

  private without(page: string): KeptView[] {
    return this.all().filter((kept) => kept.page !== page);
  }

  /** Newest first. */
  private all(): readonly KeptView[] {
    return this.memory.get<readonly KeptView[]>(KEY, []);
  }
}

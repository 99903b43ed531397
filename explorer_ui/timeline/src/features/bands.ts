/** Findings and warnings as tracks above the others: asked for once the plot is drawn, anew where the scope changes. */

import type { Core } from "../core.js";
import { isAbort, requestJson } from "../data/source.js";
import { type BandAnswer, readBands } from "../data/track.js";
import type { TimeRange } from "../view/time_range.js";

const AGAIN_MS = 900;

export class Bands {
  private asking: AbortController | null = null;
  private scope: TimeRange | null = null;
  private asked: string | null = null;
  private isReady = false;

  constructor(private readonly core: Core) {}

  /** What figures are of: findings are simulated for it. */
  setScope(scope: TimeRange | null): void {
    this.scope = scope;
    if (this.isReady) this.ask();
  }

  /** The plot is drawn: from now on there is time for bands. */
  start(): void {
    if (this.isReady) return;
    this.isReady = true;
    this.ask();
  }

  destroy(): void {
    this.asking?.abort();
  }

  private ask(): void {
    const { scope } = this;
    const params: Record<string, string> = scope
      ? { scope_start: String(Math.floor(scope.startNs)), scope_end: String(Math.ceil(scope.endNs)) }
      : {};
    const key = JSON.stringify(params);
    if (key === this.asked) return;
    this.asked = key;
    this.asking?.abort();
    this.asking = new AbortController();
    void this.fetch(params, this.asking.signal);
  }

  /** Findings take a while to be simulated: ask until they are. Not every host has this route. */
  private async fetch(params: Record<string, string>, signal: AbortSignal): Promise<void> {
    try {
      for (;;) {
        const answer = await requestJson<{ tracks: BandAnswer[]; ready: boolean }>(this.core.source, "bands", params, signal);
        signal.throwIfAborted();
        if (answer.ready) {
          this.core.setBands(readBands(answer.tracks), params);
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        signal.throwIfAborted();
      }
    } catch (error) {
      if (!isAbort(error)) this.core.setBands([], params);
    }
  }
}

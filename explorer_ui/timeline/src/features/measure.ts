/** The measuring ruler: from an edge to the pointer, without choosing anything; its ends snap to edges of spans. */

import type { Core } from "../core.js";

export class Measure {
  private fromNs: number | null = null;
  private isHeld = false;

  constructor(private readonly core: Core) {}

  /** First put the ruler at a time, then hold its other end, then take it away. */
  step(atNs: number | null): void {
    if (this.isHeld || (this.fromNs === null && atNs === null)) this.clear();
    else if (this.fromNs === null) this.fromNs = atNs;
    else this.isHeld = true;
    if (this.fromNs !== null && !this.isHeld) this.follow(atNs ?? this.fromNs);
  }

  /** Whether it has an end that goes with the pointer. */
  get isFollowing(): boolean {
    return this.fromNs !== null && !this.isHeld;
  }

  /** The pointer is at a time. */
  follow(atNs: number): void {
    if (this.fromNs !== null && !this.isHeld) this.core.setOverlays({ measured: { startNs: this.fromNs, endNs: atNs } });
  }

  clear(): void {
    this.fromNs = null;
    this.isHeld = false;
    this.core.setOverlays({ measured: null });
  }
}

/** The part of the profile in sight: a range of time and a height to which it is scrolled. */

import { equalRanges, type TimeRange, within } from "./time_range.js";
import { TimeScale } from "./time_scale.js";

export class Viewport {
  bounds: TimeRange = { startNs: 0, endNs: 1 };
  width = 1;
  height = 1;
  scrollTop = 0;
  private shown: TimeRange = { startNs: 0, endNs: 1 };

  get range(): TimeRange {
    return this.shown;
  }

  get scale(): TimeScale {
    return new TimeScale(this.shown, this.width);
  }

  /** Whether all of the profile is in sight. */
  get isWhole(): boolean {
    return this.shown.startNs <= this.bounds.startNs && this.shown.endNs >= this.bounds.endNs;
  }

  /** Show a range, kept inside the profile; whether anything changed. */
  show(range: TimeRange): boolean {
    const wanted = within(range, this.bounds);
    if (equalRanges(wanted, this.shown)) return false;
    this.shown = wanted;
    return true;
  }

  /** Scroll to a height; whether anything changed. */
  scrollTo(top: number, contentHeight: number): boolean {
    const wanted = Math.min(Math.max(top, 0), Math.max(contentHeight, 0));
    if (wanted === this.scrollTop) return false;
    this.scrollTop = wanted;
    return true;
  }
}

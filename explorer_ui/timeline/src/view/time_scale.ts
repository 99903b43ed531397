/** Converts between times and pixels of the plot. */

import { lengthOf, type TimeRange } from "./time_range.js";

export class TimeScale {
  /** @param width Pixels in which the range is shown. */
  constructor(
    readonly range: TimeRange,
    readonly width: number,
  ) {}

  /** Time that one pixel stands for. */
  get nsPerPixel(): number {
    return lengthOf(this.range) / Math.max(this.width, 1);
  }

  /** Pixel at which a time stands; outside [0, width] where it is out of sight. */
  toX(timeNs: number): number {
    return (timeNs - this.range.startNs) / this.nsPerPixel;
  }

  /** Time that stands at a pixel. */
  toNs(x: number): number {
    return this.range.startNs + x * this.nsPerPixel;
  }
}

/** What the pointer does on the plot: tells what it rests on, chooses, moves, zooms. */

import type { Core } from "../core.js";
import type { Renderer } from "../draw/renderer.js";
import type { GestureTarget } from "../input/gestures.js";
import type { PageFrame } from "../panels/frame.js";
import { RULER_HEIGHT } from "../panels/stylesheet.js";
import { describe, type Tooltip } from "../panels/tooltip.js";
import { type Hit, hitTest, type SpanHit } from "../view/hit.js";
import { depthAt } from "../view/layout.js";
import type { TimeRange } from "../view/time_range.js";
import type { Change } from "./comparison.js";
import type { Details } from "./details.js";
import type { Measure } from "./measure.js";
import type { ReaderTable } from "./reader_table.js";
import { type Choice, refOf } from "./choice.js";
import { nearestEdge } from "./snapping.js";

/** Pixels above a box that is zoomed into. */
const BOX_MARGIN = 8;

export class Pointing {
  /** The time at which the pointer is; null where it is not on the plot. */
  timeNs: number | null = null;
  private at: { readonly x: number; readonly y: number } | null = null;

  constructor(
    private readonly core: Core,
    private readonly renderer: Renderer,
    private readonly frame: PageFrame,
    private readonly tooltip: Tooltip,
    private readonly reader: ReaderTable,
    private readonly choice: Choice,
    private readonly details: Details,
    private readonly measure: Measure,
  ) {}

  /** The edge of a span at the pointer, or else the pointer's time; null where it is not on the plot. */
  get edgeNs(): number | null {
    return this.at === null || this.timeNs === null ? null : this.snapped(this.at.x, this.at.y) ?? this.timeNs;
  }

  private snapped(x: number, y: number | null): number | null {
    return nearestEdge(this.renderer.rows, this.core.viewport.scale, x, y);
  }

  /** What gestures act on. */
  target(): GestureTarget {
    const { core } = this;
    return {
      scale: () => core.viewport.scale,
      setRange: (range) => core.show(range),
      scrollBy: (pixels) => core.scrollTo(core.viewport.scrollTop + pixels),
      onHover: (x, y) => this.hover(x, y),
      onClick: (x, y) => this.click(x, y),
      onDoubleClick: (x, y) => {
        const hit = this.hitAt(x, y);
        if (hit?.kind === "span") core.fit({ startNs: hit.startNs, endNs: hit.startNs + Math.max(hit.durationNs, 1) });
      },
      onRange: (range, isDone) => this.dragRange(range, isDone),
      onBox: (box, isDone) => this.dragBox(box, isDone),
    };
  }

  private dragRange(range: TimeRange | null, isDone: boolean): void {
    const whole = range && this.toEdges(range);
    this.core.setOverlays({ dragged: isDone ? null : whole });
    if (isDone) this.choice.chooseRange(whole);
    else this.details.drag(whole);
  }

  /** A range whose ends are edges of spans, where such are near. */
  private toEdges(range: TimeRange): TimeRange {
    const { scale } = this.core.viewport;
    const edge = (timeNs: number): number => this.snapped(scale.toX(timeNs), null) ?? timeNs;
    const [startNs, endNs] = [edge(range.startNs), edge(range.endNs)];
    return endNs > startNs ? { startNs, endNs } : range;
  }

  private dragBox(box: { left: number; right: number; top: number; bottom: number } | null, isDone: boolean): void {
    const { core } = this;
    this.frame.setBox(isDone ? null : box);
    if (!box || !isDone) return;
    const { scale } = core.viewport;
    const top = box.top - RULER_HEIGHT - core.layout.pinnedHeight;
    if (top > 0) core.scrollTo(core.viewport.scrollTop + top - BOX_MARGIN);
    core.show({ startNs: scale.toNs(box.left), endNs: scale.toNs(box.right) });
  }

  /** What stands at a point of the plot. */
  private hitAt(x: number, y: number): Hit | null {
    if (y < RULER_HEIGHT) return null;
    const drawn = this.renderer.rows.find((one) => y >= one.top && y < one.top + one.row.height);
    const depth = drawn && depthAt(drawn.row, y - drawn.top);
    if (!drawn || depth === undefined || depth === null) return null;
    return hitTest(drawn.placed, drawn.row, depth, x, this.core.viewport.scale, this.core.names);
  }

  private hover(x: number | null, y: number): void {
    this.timeNs = x === null ? null : this.core.viewport.scale.toNs(x);
    this.at = x === null ? null : { x, y };
    if (this.measure.isFollowing && this.edgeNs !== null) this.measure.follow(this.edgeNs);
    const hit = x === null ? null : this.hitAt(x, y);
    if (hit && x !== null) {
      const { body, stage } = this.frame;
      this.tooltip.show([...describe(hit), ...this.changes(hit)], x + stage.offsetLeft, y, body.clientWidth, body.clientHeight);
    } else this.tooltip.hide();
    const hovered = hit?.kind === "span" ? boxOf(hit) : null;
    const { hovered: before } = this.core.overlays;
    if (hovered?.startNs !== before?.startNs || hovered?.track !== before?.track || hovered?.depth !== before?.depth) {
      this.core.setOverlays({ hovered });
    }
  }

  /** How the mean of a span's name differs between the profile and those that it is compared with. */
  private changes(hit: Hit): string[] {
    const { comparison, names, summary } = this.core;
    if (hit.kind !== "span" || !comparison || !summary) return [];
    const { track } = hit.row;
    return comparison.changes(track, names.code(hit.name)).map((change) => changeText(change, track.base > 0 ? summary.name : null));
  }

  private click(x: number, y: number): void {
    this.frame.body.focus({ preventScroll: true });
    const hit = this.hitAt(x, y);
    if (hit) this.core.setActive(hit.row.id);
    this.choice.chooseSpan(hit?.kind === "span" ? refOf(hit) : null);
    if (hit) this.reader.say(describe(hit).join(", "));
  }
}

/** A change in words; `changed` names the profile that changed where the track is not its own. */
function changeText({ ratio, base }: Change, changed: string | null): string {
  const percent = Math.abs(ratio - 1) * 100;
  if (percent < 2) return changed === null ? `as long as in ${base}` : `as long in ${changed}`;
  const change = `${percent.toFixed(0)} % ${ratio > 1 ? "slower" : "faster"}`;
  return `${change} ${changed === null ? `than in ${base}` : `in ${changed}`}, on average`;
}

/** The box of what the pointer rests on: of a bucket, the bucket. */
function boxOf(hit: SpanHit): { track: string; depth: number; startNs: number; durationNs: number } {
  const durationNs = hit.isBucket ? hit.bucketNs : hit.durationNs;
  return { track: hit.row.track.id, depth: hit.depth, startNs: hit.startNs, durationNs };
}

/** Draws one frame: rows with their shapes, the ruler, and what is chosen on top of them. */

import type { ChunkCache } from "../data/chunk_cache.js";
import type { NameTable } from "../data/names.js";
import type { TileSpan } from "../data/tile.js";
import { RULER_HEIGHT } from "../panels/stylesheet.js";
import { depthPlace, type Layout, type Row, ROW_PADDING, rowsBetween, THIN_HEIGHT, type HeadingRow, type TrackRow } from "../view/layout.js";
import { bucketPixels, placedChunks, type Placed, sharpTiles } from "../view/scene.js";
import type { TimeScale } from "../view/time_scale.js";
import type { TimelineView } from "../view/view_state.js";
import { LabelWriter } from "./labels.js";
import { drawOverlays, drawRulerMarks, type Overlays } from "./overlays.js";
import type { Ink, Painter } from "./painter.js";
import { parseColour, type Rgb } from "./palette.js";
import { drawRuler, tickPlaces } from "./ruler.js";
import type { Theme } from "./theme.js";

/** All that a frame is drawn from. */
export interface FrameInput {
  readonly scale: TimeScale;
  readonly height: number;
  readonly scrollTop: number;
  readonly layout: Layout;
  readonly theme: Theme;
  readonly view: TimelineView;
  readonly cache: ChunkCache;
  readonly names: NameTable;
  readonly overlays: Overlays;
  /** Whether spans have the colours of a comparison. */
  readonly isCompared: boolean;
  /** Chunks of what is lit up on a track; null where nothing is, so that rows keep their colours. */
  readonly lit: ((row: TrackRow, tiles: TileSpan) => readonly Placed[]) | null;
}

type Rows = Pick<TrackRow, "fullRows" | "rowHeight" | "thinRows">;

/** A row with its chunks, and where it stands on the canvas. */
export interface DrawnRow {
  readonly row: TrackRow;
  readonly top: number;
  readonly placed: readonly Placed[];
}

export class FrameDrawer {
  private readonly labels = new LabelWriter();
  private theme: Theme | null = null;
  private colours: { surface: Rgb; heading: Rgb; grid: Rgb; border: Rgb } = {
    surface: [0, 0, 0],
    heading: [0, 0, 0],
    grid: [0, 0, 0],
    border: [0, 0, 0],
  };

  /** Draw; the rows that are in sight, from top to bottom. */
  draw(painter: Painter, input: FrameInput): DrawnRow[] {
    this.adopt(input.theme);
    const { layout, height } = input;
    const tiles = sharpTiles(input.scale);
    const scrollBase = RULER_HEIGHT + layout.pinnedHeight;
    painter.begin();
    const drawn: DrawnRow[] = [];
    painter.region(scrollBase, height);
    this.grid(painter, input.scale, scrollBase, height);
    for (const row of rowsBetween(layout.rows, input.scrollTop, input.scrollTop + height - scrollBase)) {
      this.row(painter, input, row, scrollBase + row.y - input.scrollTop, tiles, drawn);
    }
    const firstPinned = drawn.length;
    if (layout.pinned.length > 0) {
      painter.region(RULER_HEIGHT, scrollBase);
      this.grid(painter, input.scale, RULER_HEIGHT, scrollBase);
      for (const row of layout.pinned) this.row(painter, input, row, RULER_HEIGHT + row.y, tiles, drawn);
      painter.fill(0, scrollBase - 2, input.scale.width, 2, this.colours.border);
    }
    painter.end();
    this.text(painter.pen, input, drawn, firstPinned, scrollBase);
    return [...drawn.slice(firstPinned), ...drawn.slice(0, firstPinned)];
  }

  private text(pen: CanvasRenderingContext2D, input: FrameInput, drawn: DrawnRow[], firstPinned: number, base: number): void {
    const { scale, theme, height } = input;
    this.labels.begin(pen, theme);
    const write = (rows: readonly DrawnRow[], top: number, bottom: number): void => {
      pen.save();
      pen.beginPath();
      pen.rect(0, top, scale.width, bottom - top);
      pen.clip();
      for (const one of rows) this.labels.write(pen, one.row, one.placed, one.top, scale, input.names, input.lit !== null || input.isCompared || one.row.track.isBand);
      drawOverlays(pen, input, rows, top, bottom);
      pen.restore();
    };
    write(drawn.slice(0, firstPinned), base, height);
    if (firstPinned < drawn.length) write(drawn.slice(firstPinned), RULER_HEIGHT, base);
    drawRuler(pen, scale, RULER_HEIGHT, theme);
    drawRulerMarks(pen, input, RULER_HEIGHT);
  }

  private row(painter: Painter, input: FrameInput, row: Row, top: number, tiles: TileSpan, drawn: DrawnRow[]): void {
    const { scale } = input;
    if (row.kind === "heading") {
      painter.fill(0, top, scale.width, row.height, row.idle ? this.colours.surface : this.colours.heading);
      if (row.idle && !row.isOpen) this.idle(painter, input, row, top, tiles);
      return;
    }
    painter.fill(0, top + row.height - 1, scale.width, 1, this.colours.grid);
    const placed = placedChunks(input.cache, row.track, tiles, scale);
    const ink: Ink = row.track.isBand ? "band" : row.track.isCounter ? "counter" : input.lit ? "faint" : input.isCompared ? "delta" : "plain";
    for (const part of placed) this.strip(painter, scale, row, part, top, ink);
    if (input.lit) {
      for (const part of input.lit(row, tiles)) this.strip(painter, scale, row, part, top, "strong");
    }
    drawn.push({ row, top, placed });
  }

  /** The few events of idle tracks, one thin line for each track as long as there is room. */
  private idle(painter: Painter, input: FrameInput, row: HeadingRow, top: number, tiles: TileSpan): void {
    const room = row.height - 2 * ROW_PADDING;
    const rowHeight = Math.max(Math.floor(room / row.tracks.length), THIN_HEIGHT);
    const lines = Math.max(Math.floor(room / rowHeight), 1);
    for (const [place, track] of row.tracks.entries()) {
      if (track.isCounter) continue;
      const rows = { fullRows: 1, rowHeight, thinRows: 0 };
      for (const part of placedChunks(input.cache, track, tiles, input.scale)) {
        this.strip(painter, input.scale, rows, part, top + (place % lines) * rowHeight, input.lit ? "faint" : "plain");
      }
    }
  }

  private strip(painter: Painter, scale: TimeScale, rows: Rows, part: Placed, top: number, ink: Ink): void {
    if (part.chunk.shapes.count === 0 || part.clipRight <= part.clipLeft) return;
    painter.strip({
      shapes: part.chunk.shapes,
      originX: scale.toX(part.startNs),
      bucketPixels: bucketPixels(part.level, scale),
      clipLeft: part.clipLeft,
      clipRight: part.clipRight,
      top: top + ROW_PADDING,
      fullRows: rows.fullRows,
      rowHeight: rows.rowHeight,
      thinRows: rows.thinRows,
      thinHeight: THIN_HEIGHT,
      ink,
    });
  }

  private grid(painter: Painter, scale: TimeScale, top: number, bottom: number): void {
    for (const [x] of tickPlaces(scale).places) {
      if (x >= 0 && x < scale.width) painter.fill(Math.round(x), top, 1, bottom - top, this.colours.grid);
    }
  }

  private adopt(theme: Theme): void {
    if (theme === this.theme) return;
    this.theme = theme;
    this.colours = {
      surface: parseColour(theme.surface),
      heading: parseColour(theme.heading),
      grid: parseColour(theme.grid),
      border: parseColour(theme.border),
    };
  }
}

/** Box of a span on the canvas; null where it is out of sight. */
export function spanBox(
  drawn: DrawnRow,
  depth: number,
  startNs: number,
  durationNs: number,
  scale: TimeScale,
): { left: number; top: number; width: number; height: number } | null {
  const left = scale.toX(startNs);
  const right = scale.toX(startNs + durationNs);
  if (right < 0 || left > scale.width) return null;
  const place = depthPlace(drawn.row, drawn.row.track.isCharged ? 0 : depth);
  if (place.height === 0) return null;
  const from = Math.max(left, -4);
  return { left: from, top: drawn.top + place.top, width: Math.max(Math.min(right, scale.width + 4) - from, 2), height: place.height };
}

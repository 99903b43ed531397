/** Keeps chunks up to a budget of bytes; those drawn longest ago go first. */

import type { Chunk } from "./chunk.js";

export const DEFAULT_BUDGET_BYTES = 96 * 2 ** 20;

/** Names a chunk: level, tile and track. */
export function chunkKey(level: number, tile: number, track: number): string {
  return `${level}/${tile}/${track}`;
}

/** The track that a key of `chunkKey` names. */
function placeOf(key: string): number {
  return Number(key.slice(key.lastIndexOf("/") + 1));
}

interface Entry {
  chunk: Chunk;
  usedAt: number;
}

export class ChunkCache {
  private readonly entries = new Map<string, Entry>();
  private clock = 0;
  private held = 0;

  /**
   * @param budgetBytes What chunks may take; those that are needed for the current frame stay nevertheless.
   * @param onDrop Called with each chunk that is dropped, so that painters free what they hold of it.
   */
  constructor(
    private readonly budgetBytes = DEFAULT_BUDGET_BYTES,
    private readonly onDrop: (chunk: Chunk) => void = () => undefined,
  ) {}

  get bytes(): number {
    return this.held;
  }

  get size(): number {
    return this.entries.size;
  }

  /** Begin a frame: what is asked for from here on is newer than everything before. */
  tick(): void {
    this.clock += 1;
  }

  has(key: string): boolean {
    return this.entries.has(key);
  }

  /** A chunk, marked as used now. */
  get(key: string): Chunk | undefined {
    const entry = this.entries.get(key);
    if (!entry) return undefined;
    entry.usedAt = this.clock;
    return entry.chunk;
  }

  set(key: string, chunk: Chunk): void {
    this.delete(key);
    this.entries.set(key, { chunk, usedAt: this.clock });
    this.held += chunk.bytes;
  }

  delete(key: string): void {
    const entry = this.entries.get(key);
    if (!entry) return;
    this.entries.delete(key);
    this.held -= entry.chunk.bytes;
    this.onDrop(entry.chunk);
  }

  /** Drop everything, or the chunks of some tracks, by their place. */
  clear(isMeant: (place: number) => boolean = () => true): void {
    for (const key of [...this.entries.keys()]) if (isMeant(placeOf(key))) this.delete(key);
  }

  /** Drop what was used longest ago until the budget is kept; `isKept` names what must stay. */
  trim(isKept: (key: string) => boolean): void {
    if (this.held <= this.budgetBytes) return;
    const oldest = [...this.entries].sort((one, other) => one[1].usedAt - other[1].usedAt);
    for (const [key, entry] of oldest) {
      if (this.held <= this.budgetBytes * 0.8 || entry.usedAt >= this.clock) return;
      if (!isKept(key)) this.delete(key);
    }
  }
}

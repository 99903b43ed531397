/** All span names that were seen, each kept once, by number. */

import { colourSlot } from "../draw/palette.js";

export class NameTable {
  readonly texts: string[] = [];
  /** Slot of the palette for each name. */
  readonly slots: number[] = [];
  private readonly codes = new Map<string, number>();

  /** The number of a name. */
  code(text: string): number {
    let code = this.codes.get(text);
    if (code === undefined) {
      code = this.texts.length;
      this.codes.set(text, code);
      this.texts.push(text);
      this.slots.push(colourSlot(text));
    }
    return code;
  }

  text(code: number): string {
    return this.texts[code] ?? "";
  }

  slot(code: number): number {
    return this.slots[code] ?? 0;
  }
}

import { describe, expect, it } from "vitest";
import { colourSlot, contrast, inkOn, mixed, PALETTES, parseColour, SLOTS } from "../../src/draw/palette.js";
import { DARK, LIGHT } from "../../src/draw/theme.js";

describe("colours", () => {
  it("are the same for names that differ in their numbers only", () => {
    expect(colourSlot("fusion.12")).toBe(colourSlot("fusion.7"));
    const kinds = ["MATMUL", "ACTIVATE", "IOTA", "DMA_TRIGGER", "TENSOR_REDUCE", "add", "copy", "dot"];
    expect(new Set(kinds.map(colourSlot)).size).toBeGreaterThan(3);
  });

  it("have a text that can be read on each of them", () => {
    for (const palette of Object.values(PALETTES)) {
      expect(palette).toHaveLength(SLOTS);
      for (const colour of palette.map(parseColour)) {
        expect(contrast(colour, parseColour(inkOn(colour)))).toBeGreaterThan(4.5);
      }
    }
  });

  it.each([LIGHT, DARK])("of the theme $base can be read", (theme) => {
    const ground = parseColour(theme.background);
    for (const text of [theme.text, theme.mutedText, theme.accent, theme.mark]) {
      expect(contrast(parseColour(text), ground)).toBeGreaterThan(4.5);
      expect(contrast(parseColour(text), parseColour(theme.surface))).toBeGreaterThan(4.5);
    }
    expect(contrast(parseColour(theme.text), parseColour(theme.lit))).toBeGreaterThan(4.5);
  });

  it("mix, and fall back to grey", () => {
    expect(mixed([0, 0, 0], [255, 255, 255], 0.5)).toEqual([128, 128, 128]);
    expect(parseColour("javascript:alert(1)")).toEqual([128, 128, 128]);
  });
});

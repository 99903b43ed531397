import { expect, it } from "vitest";
import { PALETTES, parseColour } from "../../src/draw/palette.js";

/** Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009), severity 1. */
const VISION: Readonly<Record<string, readonly number[]>> = {
  usual: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  tritanopia: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};
/** Linear sRGB to XYZ, D65. */
const TO_XYZ = [0.4124564, 0.3575761, 0.1804375, 0.2126729, 0.7151522, 0.072175, 0.0193339, 0.119192, 0.9503041];
const WHITE = [0.95047, 1, 1.08883];
/** Distance in CIE L*a*b* (1976) from which areas are told apart at a glance. */
const APART = 15;

function times(matrix: readonly number[], [a, b, c]: readonly number[]): number[] {
  return [0, 3, 6].map((row) => matrix[row]! * a! + matrix[row + 1]! * b! + matrix[row + 2]! * c!);
}

function seen(colour: string, vision: readonly number[]): number[] {
  const linear = parseColour(colour).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  const xyz = times(TO_XYZ, times(vision, linear).map((part) => Math.min(Math.max(part, 0), 1)));
  const [x, y, z] = xyz.map((part, place) => part / WHITE[place]!).map((part) => (part > 0.008856 ? Math.cbrt(part) : 7.787 * part + 16 / 116));
  return [116 * y! - 16, 500 * (x! - y!), 200 * (y! - z!)];
}

it.each(Object.keys(VISION))("the engines' colours are told apart with %s vision", (name) => {
  const colours = PALETTES.engines.map((colour) => seen(colour, VISION[name]!));
  for (const [place, one] of colours.entries()) {
    for (const other of colours.slice(place + 1)) {
      expect(Math.hypot(...one.map((part, axis) => part - other[axis]!))).toBeGreaterThan(APART);
    }
  }
});

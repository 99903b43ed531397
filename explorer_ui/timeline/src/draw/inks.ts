/** The colours of shapes under a theme. */

import type { Ink, InkTable } from "./painter.js";
import { mixed, PALETTES, parseColour, type Rgb, SLOTS } from "./palette.js";
import type { Theme } from "./theme.js";

/** How strong the tint behind a bucket is: it says that spans are here, its solid part how busy they keep it. */
const TINT = 0.24;
const FAINT = 0.2;

/** All colours that painters need; those of dimmed slots are faint. */
export function inkTable(theme: Theme, dimmed: ReadonlySet<number> = new Set()): InkTable {
  const background = parseColour(theme.background);
  const towards = (colours: readonly Rgb[], share: number): readonly Rgb[] =>
    colours.map((colour) => mixed(background, colour, share));
  const bright = PALETTES[theme.palette].map(parseColour);
  const plain = bright.map((colour, slot) => (dimmed.has(slot) ? mixed(background, colour, FAINT) : colour));
  const counter = plain.map(() => mixed(parseColour(theme.accent), background, 0.25));
  const strong = plain.map(() => parseColour(theme.lit));
  const delta = deltaColours(theme);
  const band = bandColours(theme);
  const solid: Record<Ink, readonly Rgb[]> = { plain, faint: towards(plain, FAINT), counter, strong, delta, band };
  return {
    background,
    solid,
    tint: {
      plain: towards(plain, TINT),
      faint: towards(plain, TINT * FAINT * 2),
      counter: towards(counter, 0.45),
      strong: towards(strong, TINT * 1.5),
      delta: towards(delta, TINT),
      band: towards(band, 0.5),
    },
  };
}

/** Colours of findings, then of warnings; so light that a text in the text's colour can be read on them. */
function bandColours(theme: Theme): readonly Rgb[] {
  const background = parseColour(theme.background);
  const warning = mixed(background, parseColour(theme.lit), 0.5);
  return [mixed(background, parseColour(theme.mark), 0.4), ...Array.from({ length: SLOTS - 1 }, () => warning)];
}

/** Colours by slot, from much faster over the same to much slower; the last one for what has nothing to compare. */
export function deltaColours(theme: Theme): readonly Rgb[] {
  const [faster, slower] = [parseColour(theme.faster), parseColour(theme.slower)];
  const same = mixed(parseColour(theme.background), parseColour(theme.mutedText), 0.35);
  const unknown = mixed(parseColour(theme.background), parseColour(theme.mutedText), 0.18);
  return [faster, mixed(same, faster, 0.66), mixed(same, faster, 0.33), same,
    mixed(same, slower, 0.33), mixed(same, slower, 0.66), slower, unknown];
}

/**
 * Colours of spans. A name always has the same colour; names that differ in a number only share one.
 *
 * The palettes are told apart with the common kinds of colour blindness: Okabe and Ito, "Color Universal Design"
 * (2008), and Paul Tol, "Colour Schemes" (SRON/EPS/TN/09-002, 2021), "muted" and "bright". Of Okabe and Ito's colours
 * pink and grey are replaced: with deuteranopia both look like their green, a lighter grey and a darker pink do not.
 */

/** Colours that spans may have. */
export const SLOTS = 8;

export type PaletteName = "engines" | "muted" | "bright";

/** Red, green, blue; 0 to 255. */
export type Rgb = readonly [number, number, number];

export const PALETTES: Readonly<Record<PaletteName, readonly string[]>> = {
  engines: ["#56b4e9", "#e69f00", "#009e73", "#a33a76", "#0072b2", "#f0e442", "#d55e00", "#9aa3ae"],
  muted: ["#88ccee", "#cc6677", "#ddcc77", "#44aa99", "#aa4499", "#999933", "#332288", "#117733"],
  bright: ["#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb", "#7f9bd1"],
};

/** The slot of a name: a hash of it without its numbers, so that `fusion.12` and `fusion.7` are alike. */
export function colourSlot(name: string): number {
  let hash = 0x811c9dc5;
  for (let place = 0; place < name.length; place += 1) {
    const code = name.charCodeAt(place);
    if (code >= 48 && code <= 57) continue;
    hash = Math.imul(hash ^ code, 0x01000193);
  }
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 13;
  return (hash >>> 0) % SLOTS;
}

/** Reads `#rrggbb`; grey for anything else. */
export function parseColour(text: string): Rgb {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})/i.exec(text.trim());
  if (!match) return [128, 128, 128];
  return [parseInt(match[1]!, 16), parseInt(match[2]!, 16), parseInt(match[3]!, 16)];
}

/** A colour between two, `share` of the way to the second. */
export function mixed(one: Rgb, other: Rgb, share: number): Rgb {
  const between = (place: 0 | 1 | 2): number => Math.round(one[place] + (other[place] - one[place]) * share);
  return [between(0), between(1), between(2)];
}

/** Relative luminance, WCAG 2.2. */
export function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

/** Contrast of two colours, 1 to 21, WCAG 2.2. */
export function contrast(one: Rgb, other: Rgb): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high! + 0.05) / (low! + 0.05);
}

/** Black or white: whichever reads better on a colour. */
export function inkOn(colour: Rgb): string {
  return contrast(colour, [16, 20, 26]) >= contrast(colour, [255, 255, 255]) ? "#10141a" : "#ffffff";
}

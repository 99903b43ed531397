/** Colours and fonts of everything but the data; hosts may replace any of them. */

import type { PaletteName } from "./palette.js";

export interface Theme {
  readonly base: "light" | "dark";
  readonly background: string;
  /** Of headers, ruler and panels. */
  readonly surface: string;
  /** Of headings between tracks. */
  readonly heading: string;
  readonly border: string;
  readonly grid: string;
  readonly text: string;
  readonly mutedText: string;
  /** Of focus rings, chosen spans and ranges. */
  readonly accent: string;
  /** Of search hits and markers. */
  readonly mark: string;
  /** Of what is lit up on all tracks. */
  readonly lit: string;
  /** Of what got slower and faster in a comparison: names in the text's colour stand on them (contrast above 4.5). */
  readonly slower: string;
  readonly faster: string;
  readonly font: string;
  readonly palette: PaletteName;
}

const FONT = 'system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

export const LIGHT: Theme = {
  base: "light",
  background: "#ffffff",
  surface: "#f7f8fa",
  heading: "#eceff3",
  border: "#d5dae1",
  grid: "#e6e9ee",
  text: "#1b2330",
  mutedText: "#566070",
  accent: "#0b5cad",
  mark: "#b3261e",
  lit: "#ffb000",
  slower: "#db7700",
  faster: "#3d9bd6",
  font: FONT,
  palette: "engines",
};

export const DARK: Theme = {
  base: "dark",
  background: "#14181f",
  surface: "#1b2028",
  heading: "#242b35",
  border: "#38414e",
  grid: "#262d38",
  text: "#e8ecf2",
  mutedText: "#a5afbd",
  accent: "#6cb6ff",
  mark: "#ff8a80",
  lit: "#9a5b00",
  slower: "#a35600",
  faster: "#1a6ea6",
  font: FONT,
  palette: "engines",
};

/** A theme by name, or with some of its colours replaced; `system` follows the browser. */
export type ThemeChoice = "light" | "dark" | "system" | (Partial<Theme> & { readonly base: "light" | "dark" });

/** The theme that a choice means now. */
export function resolveTheme(choice: ThemeChoice): Theme {
  if (choice === "light") return LIGHT;
  if (choice === "dark") return DARK;
  if (choice === "system") return prefersDark() ? DARK : LIGHT;
  return { ...(choice.base === "dark" ? DARK : LIGHT), ...choice };
}

function prefersDark(): boolean {
  return typeof matchMedia === "function" && matchMedia("(prefers-color-scheme: dark)").matches;
}

/** What colours mean, and which of them are shown: a click on one dims it, with Alt all others. */

import { ENGINE_COLOURS, type ColourBy, engineOf, type GroupedBy, isGrouped, OTHER_SLOT } from "../draw/engine_colours.js";
import { PALETTES } from "../draw/palette.js";
import type { Theme } from "../draw/theme.js";
import type { Track } from "../data/track.js";
import { element } from "./dom.js";

const WAYS: readonly (readonly [ColourBy, string])[] = [
  ["engine", "By engine"], ["name", "By name"], ["module", "By module"], ["line", "By line"], ["opcode", "By opcode"], ["wait", "By wait"],
];

export interface LegendTarget {
  /** What the slots of a way to colour stand for; empty where the source does not know. */
  groups(by: GroupedBy): Promise<readonly string[]>;
  onColourBy(by: ColourBy): void;
  /** Slots that are dimmed. */
  onDimmed(slots: ReadonlySet<number>): void;
}

export class Legend {
  readonly root = element("span", "nt-legend");
  private readonly chips = element("span", "nt-chips", { role: "group", label: "Engines" });
  private readonly dimmed = new Set<number>();
  private slots: readonly number[] = [];
  private engines: readonly (readonly [number, string])[] = [];
  private readonly choice = element("select", "nt-colour-by", { label: "Color by", title: "Color by" });
  private by: ColourBy = "engine";
  private isChosen = false;

  constructor(private readonly target: LegendTarget) {
    for (const [value, name] of WAYS) {
      const option = element("option", "", { text: name });
      option.value = value;
      this.choice.append(option);
    }
    this.choice.addEventListener("change", () => {
      this.isChosen = true;
      void this.colourBy(this.choice.value as ColourBy);
    });
    this.root.append(this.choice, this.chips);
  }

  /** Show the engines that a profile's tracks have; one without any, as of a GPU, is colored by name. */
  open(tracks: readonly Track[]): void {
    const found = new Set(tracks.map((track) => engineOf(track)?.slot ?? OTHER_SLOT));
    this.engines = ENGINE_COLOURS.filter((one) => found.has(one.slot)).map((one) => [one.slot, one.name]);
    const usual = this.engines.some(([slot]) => slot !== OTHER_SLOT) ? "engine" : "name";
    if (!this.isChosen && usual !== this.by) {
      this.choice.value = usual;
      void this.colourBy(usual);
    } else if (this.by === "engine") this.show(this.engines, "Engines");
  }

  private async colourBy(by: ColourBy): Promise<void> {
    this.by = by;
    this.dim([]);
    this.target.onColourBy(by);
    this.show(by === "engine" ? this.engines : [], "Engines");
    if (!isGrouped(by)) return;
    const names = await this.target.groups(by);
    if (this.by !== by) return;
    const groups = names.map((name, slot) => [slot, name] as const);
    this.show([...groups, [OTHER_SLOT, names.length > 0 ? "Others" : "Unknown"]], "Groups");
  }

  /** Chips of slots with their names; long ones are cut to their ends, which tell them apart. */
  private show(chips: readonly (readonly [number, string])[], label: string): void {
    this.slots = chips.map(([slot]) => slot);
    this.chips.hidden = chips.length === 0;
    this.chips.classList.toggle("named", label === "Groups");
    this.chips.setAttribute("aria-label", label);
    this.chips.replaceChildren(...chips.map(([slot, name]) => this.chip(slot, name)));
  }

  setTheme(theme: Theme): void {
    PALETTES[theme.palette].forEach((colour, slot) => this.root.style.setProperty(`--nt-slot-${slot}`, colour));
  }

  private chip(slot: number, name: string): HTMLElement {
    const swatch = element("i", "");
    swatch.style.background = `var(--nt-slot-${slot})`;
    const chip = element("button", "nt-chip", { title: `${name}: click to dim it, Alt+click to dim all others` });
    chip.type = "button";
    chip.dataset.slot = String(slot);
    chip.append(swatch, shortened(name));
    chip.addEventListener("click", (event) => this.toggle(slot, event.altKey));
    return this.pressed(chip);
  }

  private toggle(slot: number, isOnly: boolean): void {
    if (isOnly) {
      const others = this.slots.filter((one) => one !== slot);
      const isAlone = !this.dimmed.has(slot) && others.every((one) => this.dimmed.has(one));
      this.dim(isAlone ? [] : others);
    } else if (this.dimmed.has(slot)) this.dim([...this.dimmed].filter((one) => one !== slot));
    else this.dim([...this.dimmed, slot]);
  }

  private dim(slots: readonly number[]): void {
    this.dimmed.clear();
    for (const slot of slots) this.dimmed.add(slot);
    for (const chip of this.chips.children) this.pressed(chip as HTMLElement);
    this.target.onDimmed(this.dimmed);
  }

  private pressed(chip: HTMLElement): HTMLElement {
    chip.setAttribute("aria-pressed", String(!this.dimmed.has(Number(chip.dataset.slot))));
    return chip;
  }
}

const LONGEST_NAME = 18;

/** The end of a long name, from its last part that fits. */
function shortened(name: string): string {
  if (name.length <= LONGEST_NAME) return name;
  return `…${name.slice(-LONGEST_NAME)}`;
}

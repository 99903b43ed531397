/** Heat of a line: six steps from cold to hot, the same in gutter, ruler and text. */

/** Colours of the steps, from a sequential scheme that reads on light and dark grounds. */
export const HEAT_COLOURS = ["#fed98e", "#fec44f", "#fe9929", "#ec7014", "#cc4c02", "#993404"] as const;

/** Least share of the hottest line's time for each step above the first. */
const STEPS = [0.02, 0.08, 0.2, 0.45, 0.75];

/** The step, from 0, of a line with a part of the hottest line's time. */
export function heatOf(deviceNs: number, hottestNs: number): number {
  if (hottestNs <= 0) return 0;
  const part = deviceNs / hottestNs;
  return STEPS.filter((least) => part >= least).length;
}

/** The gutter's picture of a step: a bar as long as the step is hot. */
export function heatIcon(step: number): string {
  const width = 3 + (step * 13) / (HEAT_COLOURS.length - 1);
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16">` +
    `<rect x="0" y="2" width="${width.toFixed(1)}" height="12" rx="1" fill="${HEAT_COLOURS[step] ?? HEAT_COLOURS[0]}"/></svg>`
  );
}

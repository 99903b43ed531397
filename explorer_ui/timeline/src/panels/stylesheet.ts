/** How everything around the canvas looks; colours come from the theme as custom properties. */

import type { Theme } from "../draw/theme.js";

export const HEADER_WIDTH = 232;
export const RULER_HEIGHT = 28;

/** Put a theme's colours on the root element. */
export function applyTheme(root: HTMLElement, theme: Theme): void {
  const colours: readonly (readonly [string, string])[] = [
    ["background", theme.background],
    ["surface", theme.surface],
    ["heading", theme.heading],
    ["border", theme.border],
    ["text", theme.text],
    ["muted", theme.mutedText],
    ["accent", theme.accent],
    ["mark", theme.mark],
    ["font", theme.font],
  ];
  for (const [name, value] of colours) root.style.setProperty(`--nt-${name}`, value);
  root.style.colorScheme = theme.base;
}

export const STYLES = `
.nt { position: relative; container-type: inline-size; display: flex; flex-direction: column; height: 100%; min-height: 240px; overflow: hidden;
  background: var(--nt-background); color: var(--nt-text); font: 12px/1.35 var(--nt-font); box-sizing: border-box; }
.nt *, .nt *::before { box-sizing: border-box; }
.nt button, .nt input, .nt select { font: inherit; color: inherit; }
.nt :focus-visible { outline: 2px solid var(--nt-accent); outline-offset: -2px; border-radius: 3px; }
.nt-bar { display: flex; gap: 6px; align-items: center; padding: 5px 8px; background: var(--nt-surface);
  border-bottom: 1px solid var(--nt-border); }
.nt-button { flex-shrink: 0; border: 1px solid transparent; background: none; border-radius: 4px; min-width: 26px; height: 26px;
  padding: 0 7px; cursor: pointer; line-height: 1; }
.nt-button:hover { background: var(--nt-heading); border-color: var(--nt-border); }
.nt-button[aria-pressed="true"] { background: var(--nt-heading); border-color: var(--nt-accent); }
.nt-button:disabled { opacity: .45; cursor: default; }
.nt-search { flex: 0 1 300px; min-width: 90px; display: flex; align-items: center; gap: 2px; border: 1px solid var(--nt-border); border-radius: 4px;
  background: var(--nt-background); height: 26px; }
.nt-search:focus-within { border-color: var(--nt-accent); }
.nt-search input { border: 0; background: none; flex: 1 1 auto; width: 0; min-width: 40px; padding: 0 8px; height: 24px; outline: none; }
.nt-search .nt-button { height: 22px; min-width: 22px; padding: 0 4px; }
.nt-legend { display: flex; align-items: center; gap: 6px; }
.nt-colour-by { height: 26px; border: 1px solid var(--nt-border); border-radius: 4px; background: var(--nt-background); padding: 0 4px; }
.nt-chips { display: flex; gap: 2px; }
.nt-chip { display: flex; align-items: center; gap: 5px; height: 26px; padding: 0 6px; border: 0; border-radius: 4px; background: none;
  cursor: pointer; white-space: nowrap; }
.nt-chip:hover { background: var(--nt-heading); }
.nt-chip i { width: 10px; height: 10px; border-radius: 2px; box-shadow: inset 0 0 0 1px rgb(0 0 0 / .25); }
@container (max-width: 1250px) { .nt-status { display: none; } }
@container (max-width: 1250px) { .nt-bar > .nt-button:last-child { margin-left: auto; } }
@container (max-width: 1000px) { .nt-chip { padding: 0 4px; gap: 4px; } }
@container (max-width: 900px) { .nt-search:not(:focus-within) .nt-button { display: none; } }
@container (max-width: 1120px) { .nt .nt-chips:not(.named) .nt-chip { font-size: 0; gap: 0; } }
@container (max-width: 820px) { .nt-chips.named { max-width: 250px; } }
.nt-legend:has(.named) { min-width: 0; }
.nt-chips.named { overflow-x: auto; scrollbar-width: thin; min-width: 0; }
.nt-chip[aria-pressed="false"] { color: var(--nt-muted); text-decoration: line-through; }
.nt-chip[aria-pressed="false"] i { opacity: .25; }
.nt-hits { color: var(--nt-muted); padding: 0 6px; white-space: nowrap; font-variant-numeric: tabular-nums; }
.nt-status { margin-left: auto; color: var(--nt-muted); white-space: nowrap; min-width: 0; overflow: hidden; text-overflow: ellipsis; font-variant-numeric: tabular-nums; }
.nt-overview { position: relative; height: 44px; border-bottom: 1px solid var(--nt-border); background: var(--nt-surface);
  cursor: crosshair; touch-action: none; flex: none; }
.nt-overview canvas { position: absolute; inset: 0; display: block; }
.nt-overview-window, .nt-overview-shade, .nt-overview-edge { position: absolute; top: 0; bottom: 0; left: 0; width: 1px;
  transform-origin: left; }
.nt-overview-window { background: color-mix(in srgb, var(--nt-accent) 12%, transparent); cursor: grab; }
.nt-overview-edge { background: var(--nt-accent); pointer-events: none; }
.nt-overview-shade { pointer-events: none; background: color-mix(in srgb, var(--nt-muted) 22%, transparent); }
.nt-body { position: relative; flex: 1 1 0; min-height: 80px; overflow: hidden; outline: none; }
.nt-body:focus-visible::after { content: ""; position: absolute; inset: 0; border: 2px solid var(--nt-accent);
  pointer-events: none; z-index: 6; }
.nt-stage { position: absolute; top: 0; bottom: 0; left: ${HEADER_WIDTH}px; right: 12px; overflow: hidden; touch-action: none; }
.nt-canvas { position: absolute; top: 0; left: 0; display: block; }
.nt-canvas + .nt-canvas { pointer-events: none; }
.nt-headers { position: absolute; top: 0; bottom: 0; left: 0; width: ${HEADER_WIDTH}px; overflow: hidden;
  background: var(--nt-surface); border-right: 1px solid var(--nt-border); z-index: 2; }
.nt-corner { position: absolute; top: 0; left: 0; right: 0; height: ${RULER_HEIGHT}px; padding: 6px 8px;
  border-bottom: 1px solid var(--nt-border); background: var(--nt-surface); color: var(--nt-muted); z-index: 3;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.nt-header-layer { position: absolute; left: 0; right: 0; overflow: hidden; }
.nt-header { position: absolute; left: 0; right: 0; display: flex; align-items: flex-start; gap: 4px; padding: 2px 4px 0 6px;
  border-bottom: 1px solid var(--nt-border); overflow: hidden; background: var(--nt-surface); }
.nt-header.nt-heading { background: var(--nt-heading); font-weight: 600; align-items: center; padding-top: 0; }
.nt-header.nt-idle { align-items: center; padding-top: 0; color: var(--nt-muted); }
.nt-header.nt-active { box-shadow: inset 3px 0 0 var(--nt-accent); }
.nt-fold { border: 0; background: none; width: 18px; height: 18px; padding: 0; cursor: pointer; color: var(--nt-muted); flex: none;
  line-height: 18px; border-radius: 3px; }
.nt-fold:hover, .nt-pin:hover { background: color-mix(in srgb, var(--nt-accent) 18%, transparent); color: var(--nt-text); }
.nt-name { flex: 1 1 auto; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; line-height: 18px; }
.nt-share { flex: none; color: var(--nt-muted); font-variant-numeric: tabular-nums; line-height: 18px; font-weight: 400; }
.nt-pin { border: 0; background: none; width: 18px; height: 18px; padding: 0; cursor: pointer; color: var(--nt-muted); flex: none;
  opacity: 0; line-height: 18px; border-radius: 3px; }
.nt-header:hover .nt-pin, .nt-pin:focus-visible, .nt-pin[aria-pressed="true"] { opacity: 1; }
.nt-pin[aria-pressed="true"] { color: var(--nt-accent); }
.nt-scroll { position: absolute; top: ${RULER_HEIGHT}px; bottom: 0; right: 0; width: 12px; overflow-y: scroll; overflow-x: hidden;
  background: var(--nt-surface); scrollbar-width: thin; scrollbar-color: var(--nt-border) transparent; }
.nt-scroll > div { width: 1px; }
.nt-tooltip { position: absolute; z-index: 8; max-width: 380px; padding: 6px 9px; border-radius: 5px; pointer-events: none;
  background: var(--nt-text); color: var(--nt-background); box-shadow: 0 2px 10px rgb(0 0 0 / .3); overflow-wrap: anywhere; }
.nt-tooltip b { display: block; font-weight: 600; }
.nt-tooltip span { display: block; opacity: .85; font-variant-numeric: tabular-nums; }
.nt-notice { position: absolute; z-index: 5; top: 40%; left: 50%; transform: translate(-50%, -50%); max-width: 460px;
  padding: 14px 18px; background: var(--nt-surface); border: 1px solid var(--nt-border); border-radius: 6px; text-align: center; }
.nt-notice .nt-button { margin-top: 8px; border-color: var(--nt-border); }
.nt-panel { flex: none; max-height: 34%; overflow: auto; border-top: 1px solid var(--nt-border); background: var(--nt-surface);
  padding: 8px 12px; }
.nt.nt-apart { height: auto; min-height: 0; overflow: auto; }
.nt-apart > .nt-panel { max-height: none; border-top: 0; }
.nt-panel h3 { margin: 0 0 4px; font-size: 13px; overflow-wrap: anywhere; }
.nt-panel table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.nt-panel th { text-align: left; font-weight: 400; color: var(--nt-muted); padding: 1px 14px 1px 0; vertical-align: top; white-space: nowrap; }
.nt-panel td { padding: 1px 14px 1px 0; vertical-align: top; overflow-wrap: anywhere; max-width: 520px; }
.nt-panel td.nt-number, .nt-panel th.nt-number { text-align: right; }
.nt-raw { margin-top: 6px; }
.nt-raw summary { color: var(--nt-muted); cursor: pointer; }
.nt-fields, .nt-raw-fields { columns: 270px auto; column-gap: 26px; max-width: 1200px; margin-top: 4px; }
.nt-fields div, .nt-raw-fields div { display: flex; gap: 10px; break-inside: avoid; padding: 1px 0; }
.nt-fields dt, .nt-raw-fields dt { color: var(--nt-muted); flex: none; }
.nt-fields dd, .nt-raw-fields dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
.nt-fields { margin-bottom: 0; }
.nt-panel-columns > div { flex: 0 1 auto; min-width: 0; }
.nt-panel-columns { display: flex; gap: 28px; flex-wrap: wrap; align-items: flex-start; }
.nt-panel-head { display: flex; gap: 8px; align-items: center; }
.nt-panel-head h3 { flex: 1 1 auto; margin: 0; }
.nt .nt-link { border: 0; background: none; padding: 0; color: var(--nt-accent); cursor: pointer; text-align: left; text-decoration: underline; }
.nt-box { position: absolute; z-index: 4; border: 1px solid var(--nt-accent); pointer-events: none;
  background: color-mix(in srgb, var(--nt-accent) 14%, transparent); }
.nt-note { position: absolute; top: 2px; z-index: 7; width: 168px; height: 24px; padding: 0 6px; border: 1px solid var(--nt-accent);
  border-radius: 4px; background: var(--nt-background); }
.nt [hidden] { display: none !important; }
.nt-unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.nt-help { position: absolute; z-index: 9; right: 20px; top: 44px; background: var(--nt-surface); border: 1px solid var(--nt-border);
  border-radius: 6px; padding: 10px 16px 12px; box-shadow: 0 4px 18px rgb(0 0 0 / .25); max-height: 84%; overflow: auto; }
.nt-markers { position: absolute; z-index: 9; right: 20px; top: 44px; background: var(--nt-surface); border: 1px solid var(--nt-border);
  border-radius: 6px; padding: 8px 12px 10px; box-shadow: 0 4px 18px rgb(0 0 0 / .25); max-height: 80%; max-width: calc(100% - 40px); overflow: auto; }
.nt-markers table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 4px 0; }
.nt-markers th { text-align: left; font-weight: 400; color: var(--nt-muted); padding: 1px 12px 1px 0; white-space: nowrap; }
.nt-markers td { padding: 1px 12px 1px 0; white-space: nowrap; }
.nt-markers td.nt-number { text-align: right; }
.nt-markers input { height: 24px; width: 150px; padding: 0 6px; border: 1px solid var(--nt-border); border-radius: 4px; background: var(--nt-background); }
.nt-markers .nt-button { border-color: var(--nt-border); }
.nt-markers h3 { margin: 6px 0 0; font-size: 13px; }
.nt-markers .nt-panel-head h3 { margin: 0; }
.nt-markers p, .nt-message { margin: 4px 0; color: var(--nt-muted); }
.nt-saving { display: flex; gap: 6px; margin: 6px 0; }
.nt-help td { padding: 2px 14px 2px 0; }
.nt-help kbd { border: 1px solid var(--nt-border); border-bottom-width: 2px; border-radius: 3px; padding: 0 5px; background: var(--nt-background);
  font: 11px var(--nt-font); }
@media (prefers-reduced-motion: no-preference) { .nt-button, .nt-pin { transition: background .1s, opacity .1s; } }
`;

/** The editor's theme as the timeline's. */

import type { Theme, ThemeChoice } from "@neuron-tools/timeline";

/** Which of the editor's colours each colour of the timeline is. */
const COLOURS: Readonly<Partial<Record<keyof Theme, string>>> = {
  background: "--vscode-editor-background",
  surface: "--vscode-sideBar-background",
  heading: "--vscode-sideBarSectionHeader-background",
  border: "--vscode-panel-border",
  text: "--vscode-foreground",
  mutedText: "--vscode-descriptionForeground",
  accent: "--vscode-focusBorder",
  font: "--vscode-font-family",
};
const OPAQUE = /^(#[0-9a-f]{6}|rgb\(.+\))$/i;

/** The theme that the page has now; colours that the editor leaves out are the timeline's own. */
export function editorTheme(): ThemeChoice {
  const { classList } = document.body;
  const isLight = classList.contains("vscode-light") || classList.contains("vscode-high-contrast-light");
  const style = getComputedStyle(document.documentElement);
  const found = Object.entries(COLOURS)
    .map(([name, variable]) => [name, style.getPropertyValue(variable).trim()] as const)
    .filter(([name, value]) => (name === "font" ? value !== "" : OPAQUE.test(value)));
  return { base: isLight ? "light" : "dark", ...(Object.fromEntries(found) as Partial<Theme>) };
}

/** Call when the editor's theme changes. */
export function onThemeChange(changed: () => void): void {
  const observer = new MutationObserver(changed);
  observer.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["style"] });
}

/** The table that appears over a line with cost. */

import * as vscode from "vscode";
import { logError } from "../log";
import type { DocumentCosts } from "../source/document_costs";
import { lineMarkdown } from "../text/line_text";

const COMMANDS = [
  ["Show spans", "neuron.showSpans"],
  ["Zoom in", "neuron.zoomIntoInstructions"],
  ["Debug the slowest execution", "neuron.debugLine"],
] as const;

export class CostHover implements vscode.HoverProvider {
  constructor(private readonly costs: DocumentCosts) {}

  async provideHover(document: vscode.TextDocument, position: vscode.Position): Promise<vscode.Hover | undefined> {
    const costs = await this.costs.of(document).catch(logError);
    const found = costs?.lines.find(({ line }) => line === position.line);
    const { current: profile, base } = this.costs.data.registry;
    if (!costs || !found || !profile) return undefined;
    const place = encodeURIComponent(JSON.stringify([document.uri, position.line, position.line]));
    const links = COMMANDS.map(([title, command]) => `[${title}](command:${command}?${place})`);
    const text = new vscode.MarkdownString(lineMarkdown(found, costs.freshness, profile.name, links, base?.name ?? (costs.predicted && "the capture")));
    text.isTrusted = { enabledCommands: COMMANDS.map(([, command]) => command) };
    return new vscode.Hover(text, document.lineAt(position.line).range);
  }
}

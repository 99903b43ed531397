/** The view Findings: the advice, the largest gain first, with its evidence. */

import * as vscode from "vscode";
import type { ProfileData } from "../profiles/data";
import type { Finding } from "../server/answers";
import { evidenceRows, gainText, isStrong } from "../text/finding_text";
import { shortened } from "../text/markdown";
import { percent } from "../text/quantities";
import { TreeView } from "./tree_view";

export class FindingItem extends vscode.TreeItem {
  constructor(readonly finding: Finding) {
    super(shortened(finding.title, 200), vscode.TreeItemCollapsibleState.Collapsed);
    this.description = finding.gain_ns === null ? "" : percent(finding.gain);
    this.tooltip = `${shortened(finding.change)}\n${gainText(finding)}`;
    this.iconPath = new vscode.ThemeIcon(isStrong(finding) ? "warning" : "lightbulb");
    this.contextValue = `finding${finding.what_if === "" ? "" : "WithWhatIf"}${finding.has_editor ? "WithEdit" : ""}`;
  }

  details(): vscode.TreeItem[] {
    const { place } = this.finding;
    const where = place.file === "" ? [] : [placeItem(place.file, place.line)];
    const words = [detail(this.finding.change, "tools"), detail(gainText(this.finding), "rocket")];
    const evidence = evidenceRows(this.finding).map(([name, value]) => detail(`${name}: ${value}`, "circle-small"));
    return [...where, ...words, ...evidence];
  }
}

export class FindingsView extends TreeView<vscode.TreeItem> {
  constructor(private readonly data: ProfileData) {
    super(data.onDidChange);
  }

  getTreeItem(item: vscode.TreeItem): vscode.TreeItem {
    return item;
  }

  protected async children(item?: vscode.TreeItem): Promise<vscode.TreeItem[]> {
    if (item) return item instanceof FindingItem ? item.details() : [];
    if (!this.data.registry.current) return [];
    const findings = await this.data.findings();
    if (findings.length > 0) return findings.map((finding) => new FindingItem(finding));
    return [detail("Nothing was found that would make it faster.", "check")];
  }
}

function detail(text: string, icon: string): vscode.TreeItem {
  const item = new vscode.TreeItem(shortened(text, 300));
  item.iconPath = new vscode.ThemeIcon(icon);
  return item;
}

function placeItem(file: string, line: number): vscode.TreeItem {
  const item = detail(`${file.split("/").pop() ?? ""}:${line}`, "go-to-file");
  item.tooltip = shortened(file);
  item.command = { title: "Open", command: "neuron.openPlace", arguments: [file, line] };
  return item;
}

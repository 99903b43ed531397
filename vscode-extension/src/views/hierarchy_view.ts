/** The view Hierarchy: device time by module, by operation and by line. */

import * as vscode from "vscode";
import type { ProfileData } from "../profiles/data";
import type { Hierarchy, ModuleNode } from "../server/answers";
import { shortened } from "../text/markdown";
import { count, duration, percent } from "../text/quantities";
import { TreeView } from "./tree_view";

const MOST_ROWS = 200;

interface Node {
  readonly item: vscode.TreeItem;
  readonly children: () => Node[];
}

export class HierarchyView extends TreeView<Node> {
  constructor(private readonly data: ProfileData) {
    super(data.onDidChange);
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return node.item;
  }

  protected async children(node?: Node): Promise<Node[]> {
    if (node) return node.children();
    return this.data.registry.current ? roots(await this.data.hierarchy()) : [];
  }
}

function roots(hierarchy: Hierarchy): Node[] {
  return [
    group("Modules", "symbol-class", () => hierarchy.modules.children.map(moduleNode)),
    group("Operations", "symbol-operator", () =>
      hierarchy.operations.slice(0, MOST_ROWS).map((row) =>
        leaf(row.name, `${costText(row)} · ${count(row.count)} calls`, "symbol-operator"),
      ),
    ),
    group("Lines", "file-code", () =>
      hierarchy.lines.slice(0, MOST_ROWS).map((row) => {
        const node = leaf(`${row.file.split("/").pop() ?? ""}:${row.line}`, costText(row), "file-code");
        node.item.tooltip = shortened(`${row.file}:${row.line} in ${row.function}`);
        node.item.command = { title: "Open", command: "neuron.openPlace", arguments: [row.file, row.line] };
        return node;
      }),
    ),
  ];
}

function group(label: string, icon: string, children: () => Node[]): Node {
  const item = new vscode.TreeItem(label, vscode.TreeItemCollapsibleState.Expanded);
  item.iconPath = new vscode.ThemeIcon(icon);
  return { item, children };
}

function moduleNode(module: ModuleNode): Node {
  const isLeaf = module.children.length === 0;
  const { None, Collapsed } = vscode.TreeItemCollapsibleState;
  const item = new vscode.TreeItem(shortened(module.name, 100), isLeaf ? None : Collapsed);
  item.description = costText(module);
  item.tooltip = `${shortened(module.path)}\n${duration(module.own_ns)} of its own, ${count(module.count)} operations`;
  item.iconPath = new vscode.ThemeIcon("symbol-class");
  return { item, children: () => module.children.map(moduleNode) };
}

function leaf(label: string, description: string, icon: string): Node {
  const item = new vscode.TreeItem(shortened(label, 100));
  item.description = description;
  item.iconPath = new vscode.ThemeIcon(icon);
  return { item, children: () => [] };
}

function costText({ device_ns: ns, share }: { device_ns: number; share: number }): string {
  return `${duration(ns)} · ${percent(share)}`;
}

/** What the views of the side bar share: they are drawn anew when what they show changes, and say what went wrong. */

import * as vscode from "vscode";
import { reportProblem } from "../server/problems";

export abstract class TreeView<Row> implements vscode.TreeDataProvider<Row>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly subscription: vscode.Disposable;

  constructor(onDidChange: vscode.Event<void>) {
    this.subscription = onDidChange(() => this.changed.fire());
  }

  abstract getTreeItem(row: Row): vscode.TreeItem;

  async getChildren(row?: Row): Promise<Row[]> {
    try {
      return await this.children(row);
    } catch (error) {
      void reportProblem(error);
      return [];
    }
  }

  dispose(): void {
    this.subscription.dispose();
    this.changed.dispose();
  }

  /** The rows below one, or the first ones. */
  protected abstract children(row?: Row): Promise<Row[]>;
}

/** Read-only documents that commands show: results of queries, comparisons, evidence. */

import * as vscode from "vscode";

export const RESULT_SCHEME = "neuron-result";
const MOST_KEPT = 50;

export class ResultDocuments implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private next = 1;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "This result is no longer kept: run the command again.\n";
  }

  /** Show plain text in an editor. */
  async showText(name: string, text: string): Promise<void> {
    const document = await vscode.workspace.openTextDocument(this.keep(`${name}.txt`, text));
    await vscode.window.showTextDocument(document, { preview: true });
  }

  /** Show Markdown, rendered. */
  async showMarkdown(name: string, text: string): Promise<void> {
    await vscode.commands.executeCommand("markdown.showPreview", this.keep(`${name}.md`, text));
  }

  /** Where a Python text can be seen. */
  python(name: string, text: string): vscode.Uri {
    return this.keep(`${name}.py`, text);
  }

  private keep(name: string, text: string): vscode.Uri {
    const path = `/${this.next++}/${name.replaceAll("/", " ")}`;
    this.texts.set(path, text);
    const oldest = this.texts.keys().next().value;
    if (this.texts.size > MOST_KEPT && oldest !== undefined) this.texts.delete(oldest);
    return vscode.Uri.from({ scheme: RESULT_SCHEME, path });
  }
}

/** Source files as the profile keeps them, read-only: for files that are not on this machine. */

import * as vscode from "vscode";
import type { ProfileRegistry } from "../profiles/registry";
import type { Connection } from "../server/connection";
import { readCapturedUri } from "../source/captured";

export class CapturedSources implements vscode.TextDocumentContentProvider {
  constructor(
    private readonly connection: Connection,
    private readonly registry: ProfileRegistry,
  ) {}

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const captured = readCapturedUri(uri);
    if (!captured) return "";
    const id = await this.registry.idOf(captured.profile);
    const { text } = await this.connection.ask((client) => client.source(id, captured.file));
    return text ?? "The profile does not keep the text of this file.\n";
  }
}

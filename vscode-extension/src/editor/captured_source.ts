/** Source files as the profile keeps them, read-only: for files that are not on this machine. */

import * as vscode from "vscode";
import type { ProfileRef, ProfileRegistry } from "../profiles/registry";
import type { Connection } from "../server/connection";

export const CAPTURED_SCHEME = "neuron-captured";

/** The address of a captured file. */
export function capturedUri(profile: ProfileRef, file: string): vscode.Uri {
  const path = file.startsWith("/") ? file : `/${file}`;
  return vscode.Uri.from({ scheme: CAPTURED_SCHEME, path, query: JSON.stringify([profile, file]) });
}

export class CapturedSources implements vscode.TextDocumentContentProvider {
  constructor(
    private readonly connection: Connection,
    private readonly registry: ProfileRegistry,
  ) {}

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const [profile, file] = JSON.parse(uri.query) as [ProfileRef, string];
    const id = await this.registry.idOf(profile);
    const { text } = await this.connection.ask((client) => client.source(id, file));
    return text ?? "The profile does not keep the text of this file.\n";
  }
}

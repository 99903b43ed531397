/** The timelines that are open in this window: as the editor of `profile.json`, or in panels of a remote server. */

import * as vscode from "vscode";
import { logError } from "../log";
import { profileAt, type ProfileRef, type ProfileRegistry } from "../profiles/registry";
import type { Connection } from "../server/connection";
import { reportProblem } from "../server/problems";
import type { KeptViews } from "./kept_views";
import type { ShowMessage } from "./messages";
import { TimelineSession, type SourceOpener } from "./session";

export const VIEW_TYPE = "neuron.timeline";
const PANEL_TYPE = "neuron.timelinePanel";

export class Timelines implements vscode.CustomReadonlyEditorProvider, vscode.WebviewPanelSerializer, vscode.Disposable {
  private readonly sessions = new Set<TimelineSession>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly connection: Connection,
    private readonly registry: ProfileRegistry,
    private readonly opener: SourceOpener,
    private readonly views: KeptViews,
  ) {
    this.subscriptions = [
      vscode.window.registerCustomEditorProvider(VIEW_TYPE, this, { supportsMultipleEditorsPerDocument: true }),
      vscode.window.registerWebviewPanelSerializer(PANEL_TYPE, this),
    ];
  }

  openCustomDocument(uri: vscode.Uri): vscode.CustomDocument {
    return { uri, dispose: () => undefined };
  }

  resolveCustomEditor(document: vscode.CustomDocument, panel: vscode.WebviewPanel): void {
    this.attach(profileAt(document.uri), panel);
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel, state: unknown): Promise<void> {
    const profile = (state as { profile?: Partial<ProfileRef> } | undefined)?.profile;
    const { path, name, remoteId } = profile ?? {};
    if (typeof remoteId === "string" && path !== undefined && name !== undefined) {
      this.attach({ path, name, remoteId }, panel);
    } else panel.dispose();
    return Promise.resolve();
  }

  /** Open a profile: its `profile.json` in the custom editor, one of a remote server in a panel. */
  async open(profile: ProfileRef, column = vscode.ViewColumn.Active): Promise<void> {
    if (profile.remoteId === undefined) {
      const uri = vscode.Uri.joinPath(vscode.Uri.file(profile.path), "profile.json");
      // Beside the code, the keyboard stays in the code.
      const options = { viewColumn: column, preserveFocus: column === vscode.ViewColumn.Beside };
      await vscode.commands.executeCommand("vscode.openWith", uri, VIEW_TYPE, options);
      return;
    }
    const panel = vscode.window.createWebviewPanel(PANEL_TYPE, profile.name, column, { enableFindWidget: false });
    this.attach(profile, panel);
  }

  /** The profile of the timeline that is in front; undefined where there is none. */
  get active(): ProfileRef | undefined {
    return [...this.sessions].find(({ panel }) => panel.active)?.profile;
  }

  /** The span that was clicked last in the timeline in front, else in one that is in sight. */
  get selected(): { readonly profile: ProfileRef; readonly track: string; readonly row: number } | undefined {
    const chosen = [...this.sessions].filter(({ selected, panel }) => selected !== undefined && panel.visible);
    const session = chosen.find(({ panel }) => panel.active) ?? chosen.at(-1);
    return session?.selected && { profile: session.profile, ...session.selected };
  }

  isOpen(profile: ProfileRef): boolean {
    return this.of(profile).length > 0;
  }

  /** Show a range or spans in all timelines of a profile. */
  show(profile: ProfileRef, show: ShowMessage): void {
    for (const session of this.of(profile)) session.show(show);
  }

  /** Bring a profile's timeline to the front, opened beside the code where it is not open yet. */
  async reveal(profile: ProfileRef): Promise<void> {
    const [session] = this.of(profile);
    if (session) session.panel.reveal(session.panel.viewColumn, true);
    else await this.open(profile, vscode.ViewColumn.Beside);
  }

  dispose(): void {
    for (const part of [...this.sessions, ...this.subscriptions]) part.dispose();
  }

  private of(profile: ProfileRef): TimelineSession[] {
    return [...this.sessions].filter(
      (session) => session.profile.path === profile.path && session.profile.remoteId === profile.remoteId,
    );
  }

  private attach(profile: ProfileRef, panel: vscode.WebviewPanel): void {
    const session = new TimelineSession(
      profile,
      panel,
      this.extensionUri,
      this.connection,
      this.registry,
      this.opener,
      this.views,
    );
    this.sessions.add(session);
    panel.onDidDispose(() => {
      this.sessions.delete(session);
      session.forget().catch(logError);
      session.dispose();
    });
    this.registry.choose(profile).catch(logError);
    this.registry.idOf(profile).catch(reportProblem);
  }
}

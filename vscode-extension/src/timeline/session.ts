/** One timeline in a webview: answers its requests from the server, opens the lines of spans that are clicked. */

import * as vscode from "vscode";
import { logError, messageOf } from "../log";
import type { ProfileRef, ProfileRegistry } from "../profiles/registry";
import type { Connection } from "../server/connection";
import type { KeptViews } from "./kept_views";
import { readMessage, type FromWebview, type ShowMessage, type SpanMessage, type ToWebview } from "./messages";
import { timelinePage } from "./page";

/** Opens what the user clicked, in a column that the timeline does not cover. */
export interface SourceOpener {
  openSpan(profile: ProfileRef, track: string, row: number, from: vscode.ViewColumn | undefined): Promise<void>;
  openPlace(file: string, line: number, from?: vscode.ViewColumn): Promise<void>;
}

export class TimelineSession implements vscode.Disposable {
  private readonly running = new Map<number, AbortController>();
  private readonly subscriptions: vscode.Disposable[];
  private readonly painted = new vscode.EventEmitter<number>();
  private isReady = false;
  private waiting: ShowMessage | undefined;
  /** The span that was clicked last. */
  selected: SpanMessage | undefined;
  private page: { readonly name: string; readonly isNew: boolean } | undefined;
  /** The timeline was drawn for the first time; milliseconds since its page was loaded. */
  readonly onDidPaint = this.painted.event;

  constructor(
    readonly profile: ProfileRef,
    readonly panel: vscode.WebviewPanel,
    extensionUri: vscode.Uri,
    private readonly connection: Connection,
    private readonly registry: ProfileRegistry,
    private readonly opener: SourceOpener,
    private readonly views: KeptViews,
  ) {
    const { webview } = panel;
    webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(extensionUri, "dist")] };
    this.subscriptions = [
      webview.onDidReceiveMessage((message: unknown) => {
        const known = readMessage(message);
        if (known) this.receive(known).catch(logError);
      }),
      connection.onDidRestart(() => this.open().catch(logError)),
      panel.onDidChangeViewState(() => {
        if (!panel.visible) this.isReady = false; // the page is gone, and loads again when it is shown
      }),
    ];
    webview.html = timelinePage(webview, extensionUri);
  }

  /** Show a range or spans; at once, or when the page is ready. */
  show(show: ShowMessage): void {
    if (this.isReady) this.send({ type: "show", show });
    else this.waiting = { ...this.waiting, ...show };
  }

  dispose(): void {
    for (const controller of this.running.values()) controller.abort();
    for (const part of [...this.subscriptions, this.painted]) part.dispose();
  }

  private async receive(message: FromWebview): Promise<void> {
    switch (message.type) {
      case "ready":
        this.page = { name: message.page, isNew: message.isNew };
        return this.open();
      case "view":
        return this.keepView(message.view, message.savedAt);
      case "request":
        return this.answer(message.id, message.path, message.params);
      case "cancel":
        this.running.get(message.id)?.abort();
        return;
      case "select":
        this.selected = message.span ?? undefined;
        if (message.span) {
          await this.opener.openSpan(this.profile, message.span.track, message.span.row, this.panel.viewColumn);
        }
        return;
      case "range":
        this.registry.chooseRange(this.profile, message.range ?? undefined);
        return;
      case "source":
        return this.opener.openPlace(message.file, message.line, this.panel.viewColumn);
      case "painted":
        this.painted.fire(message.milliseconds);
    }
  }

  /** Tell the page to load the profile, once the server has it. */
  private async open(): Promise<void> {
    try {
      await this.registry.idOf(this.profile);
      const { path } = this.profile;
      const kept = this.views.of(path, this.page?.isNew === true ? undefined : this.page?.name);
      this.send({ type: "open", profile: this.profile, kept: kept && { view: kept.view, savedAt: kept.savedAt } });
      this.isReady = true;
      if (this.waiting) this.send({ type: "show", show: this.waiting });
      this.waiting = undefined;
    } catch (error) {
      this.send({ type: "failure", message: messageOf(error) });
      throw error;
    }
  }

  private async keepView(view: Readonly<Record<string, unknown>>, savedAt: number): Promise<void> {
    if (this.page) await this.views.keep({ page: this.page.name, profile: this.profile.path, view, savedAt });
  }

  /** The user closed it: the next time it begins with the whole profile. */
  async forget(): Promise<void> {
    if (this.page) await this.views.forget(this.page.name);
  }

  private async answer(id: number, path: string, params: Readonly<Record<string, string>>): Promise<void> {
    const controller = new AbortController();
    this.running.set(id, controller);
    try {
      const profileId = await this.registry.idOf(this.profile);
      const bytes = await this.connection.ask((client) => client.timeline(profileId, path, params, controller.signal));
      this.send({ type: "answer", id, bytes });
    } catch (error) {
      if (!controller.signal.aborted) this.send({ type: "refusal", id, message: messageOf(error) });
    } finally {
      this.running.delete(id);
    }
  }

  private send(message: ToWebview): void {
    void this.panel.webview.postMessage(message);
  }
}

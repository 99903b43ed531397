/** The view Profiles: those of the workspace, or of the remote server, newest first. */

import * as vscode from "vscode";
import { readManifest, type Manifest, type ProfileRef, type ProfileRegistry } from "../profiles/registry";
import { reportProblem } from "../server/problems";
import { shortened } from "../text/markdown";

export class ProfileItem extends vscode.TreeItem {
  constructor(
    readonly profile: ProfileRef,
    manifest: Manifest | undefined,
    tags: readonly string[],
    isCurrent: boolean,
  ) {
    super(shortened(profile.name, 100));
    const facts = [isCurrent ? "● in the editor" : "", manifest?.target ?? "", manifest?.isComplete === false ? "incomplete" : ""];
    this.id = profile.remoteId ?? profile.path;
    this.description = [...tags.map((tag) => `#${tag}`), ...facts].filter((fact) => fact !== "").join(" · ");
    this.tooltip = [profile.path, manifest?.command ?? ""].map((line) => shortened(line)).join("\n");
    this.iconPath = new vscode.ThemeIcon(isCurrent ? "pulse" : "graph");
    this.contextValue = "profile";
    this.command = { title: "Open", command: "neuron.openProfileItem", arguments: [profile] };
  }
}

export class ProfilesView implements vscode.TreeDataProvider<ProfileItem>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly subscription: vscode.Disposable;

  constructor(private readonly registry: ProfileRegistry) {
    this.subscription = registry.onDidChangeList(() => this.changed.fire());
  }

  getTreeItem(item: ProfileItem): vscode.TreeItem {
    return item;
  }

  async getChildren(item?: ProfileItem): Promise<ProfileItem[]> {
    if (item) return [];
    try {
      return await Promise.all((await this.registry.list()).map((profile) => this.item(profile)));
    } catch (error) {
      void reportProblem(error);
      return [];
    }
  }

  dispose(): void {
    this.subscription.dispose();
    this.changed.dispose();
  }

  private async item(profile: ProfileRef): Promise<ProfileItem> {
    const manifest = profile.remoteId === undefined ? await readManifest(profile) : undefined;
    const { current } = this.registry;
    const isCurrent = current?.path === profile.path && current.remoteId === profile.remoteId;
    return new ProfileItem(profile, manifest, this.registry.tags(profile), isCurrent);
  }
}

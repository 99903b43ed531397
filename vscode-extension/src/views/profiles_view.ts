/** The view Profiles: those of the workspace, or of the remote server, newest first. */

import * as vscode from "vscode";
import { readManifest, type Manifest, type ProfileRef, type ProfileRegistry } from "../profiles/registry";
import { shortened } from "../text/markdown";
import { TreeView } from "./tree_view";

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

export class ProfilesView extends TreeView<ProfileItem> {
  constructor(private readonly registry: ProfileRegistry) {
    super(registry.onDidChangeList);
  }

  getTreeItem(item: ProfileItem): vscode.TreeItem {
    return item;
  }

  protected async children(item?: ProfileItem): Promise<ProfileItem[]> {
    return item ? [] : Promise.all((await this.registry.list()).map((profile) => this.item(profile)));
  }

  private async item(profile: ProfileRef): Promise<ProfileItem> {
    const manifest = profile.remoteId === undefined ? await readManifest(profile) : undefined;
    const { current } = this.registry;
    const isCurrent = current?.path === profile.path && current.remoteId === profile.remoteId;
    return new ProfileItem(profile, manifest, this.registry.tags(profile), isCurrent);
  }
}

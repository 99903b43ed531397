/** The commands about profiles: open, choose, tag, compare, query, export. */

import { basename } from "node:path";
import * as vscode from "vscode";
import type { ProfileRef, ProfileRegistry } from "../profiles/registry";
import { profileAt } from "../profiles/registry";
import type { Finding } from "../server/answers";
import type { Connection } from "../server/connection";
import { browserAddress } from "../server/endpoint";
import { settings, writeSetting } from "../settings";
import { whatIfText } from "../text/finding_text";
import { noticeText } from "../text/markdown";
import { differenceMarkdown, findingMarkdown, queryText } from "../text/reports";
import type { Timelines } from "../timeline/timelines";
import { FindingItem } from "../views/findings_view";
import { ProfileItem } from "../views/profiles_view";
import type { ResultDocuments } from "./documents";

const TARGETS: readonly (readonly [string, string])[] = [
  ["trn1", "Trainium 1"],
  ["trn2", "Trainium 2"],
  ["trn3", "Trainium 3"],
  ["inf1", "Inferentia 1"],
  ["inf2", "Inferentia 2"],
];
const FIRST_QUERY = "SELECT engine, count(*) AS instructions, sum(duration_ns) AS busy_ns FROM Instruction GROUP BY engine";

export class ProfileCommands {
  private lastQuery = FIRST_QUERY;

  constructor(
    private readonly connection: Connection,
    private readonly registry: ProfileRegistry,
    private readonly timelines: Timelines,
    private readonly results: ResultDocuments,
  ) {}

  /** Commands by name. */
  handlers(): Record<string, (...args: never[]) => unknown> {
    return {
      "neuron.openProfile": () => this.openProfile(),
      "neuron.openProfileFolder": (uri?: vscode.Uri) => (uri ? this.timelines.open(profileAt(uri)) : this.openProfile()),
      "neuron.openProfileItem": (profile: ProfileRef) => this.timelines.open(profile),
      "neuron.openInBrowser": (given?: unknown) => this.openInBrowser(given),
      "neuron.selectProfile": (given?: unknown) => this.select(given),
      "neuron.clearProfile": () => this.registry.choose(undefined),
      "neuron.refreshProfiles": () => this.registry.refresh(),
      "neuron.tagProfile": (given?: unknown) => this.tag(given),
      "neuron.compareWith": (given?: unknown) => this.compareWith(given),
      "neuron.compareSelected": (_: unknown, chosen?: readonly unknown[]) => this.compareSelected(chosen ?? []),
      "neuron.compareLines": () => this.compareLines(),
      "neuron.stopComparingLines": () => this.registry.compareWith(undefined),
      "neuron.showWholeProfile": () => {
        const { current } = this.registry;
        if (current) this.registry.chooseRange(current, undefined);
      },
      "neuron.query": (given?: unknown) => this.query(given),
      "neuron.exportPerfetto": (given?: unknown) => this.exportPerfetto(given),
      "neuron.selectTarget": () => this.selectTarget(),
      "neuron.showFinding": (given?: unknown) => this.showFinding(given),
      "neuron.showWhatIf": (given?: unknown) => this.showWhatIf(given),
    };
  }

  private async openProfile(): Promise<void> {
    const profiles = await this.registry.list();
    const browse = "Browse...";
    const chosen = await pick(profiles, "Profile to open", this.connection.isRemote ? [] : [browse]);
    if (chosen === browse) await this.browse();
    else if (typeof chosen === "object") await this.timelines.open(chosen);
  }

  private async browse(): Promise<void> {
    const [uri] = (await vscode.window.showOpenDialog({ canSelectFolders: true, canSelectFiles: false })) ?? [];
    if (uri) await this.timelines.open(profileAt(uri));
  }

  private async openInBrowser(given: unknown): Promise<void> {
    const profile = await this.wanted(given, "Profile to open in the browser");
    if (!profile) return;
    const id = await this.registry.idOf(profile);
    const endpoint = await this.connection.endpoint();
    // Ports of another machine are forwarded, perhaps below a path: the server must know the address to make its links.
    const seen = (await vscode.env.asExternalUri(vscode.Uri.parse(endpoint.baseUrl))).toString(true);
    const isForwarded = seen.replace(/\/$/, "") !== endpoint.baseUrl;
    if (isForwarded && !this.connection.isRemote) await this.connection.ask((client) => client.showAt(seen));
    // openExternal resolves the address itself, so it is given as it is here.
    await vscode.env.openExternal(vscode.Uri.parse(browserAddress(endpoint, id)));
  }

  private async select(given: unknown): Promise<void> {
    const profile = given instanceof ProfileItem ? given.profile : await this.ask("Profile whose costs the editor shows");
    if (profile) await this.registry.choose(profile);
  }

  private async tag(given: unknown): Promise<void> {
    const profile = await this.wanted(given, "Profile to tag");
    if (!profile) return;
    const value = this.registry.tags(profile).join(", ");
    const text = await vscode.window.showInputBox({ prompt: `Tags of ${profile.name}, with commas between`, value });
    if (text === undefined) return;
    const tags = text.split(",").map((tag) => tag.trim().replace(/^#/, ""));
    await this.registry.tag(profile, [...new Set(tags.filter((tag) => tag !== ""))]);
  }

  private async compareWith(given: unknown): Promise<void> {
    const profile = await this.wanted(given, "Profile to compare");
    if (!profile) return;
    const others = (await this.registry.list()).filter(({ path }) => path !== profile.path);
    const base = await pick(others, `Base to compare ${profile.name} with`, []);
    if (typeof base === "object") await this.compare(base, profile);
  }

  /** Show in the editor what each line took more or less than in another profile. */
  private async compareLines(): Promise<void> {
    const profile = this.registry.current ?? (await this.ask("Profile whose costs the editor shows"));
    if (!profile) return;
    await this.registry.choose(profile);
    const others = (await this.registry.list()).filter(({ path }) => path !== profile.path);
    const base = await pick(others, `Base to compare the lines of ${profile.name} with`, []);
    if (typeof base === "object") await this.registry.compareWith(base);
  }

  private async compareSelected(chosen: readonly unknown[]): Promise<void> {
    const items = chosen.filter((item): item is ProfileItem => item instanceof ProfileItem);
    const [other, base] = items.map((item) => item.profile);
    if (base && other) await this.compare(base, other);
  }

  private async compare(base: ProfileRef, other: ProfileRef): Promise<void> {
    const difference = await busy(noticeText(`Comparing ${base.name} with ${other.name}`), async () => {
      const ids = await Promise.all([this.registry.idOf(base), this.registry.idOf(other)]);
      return this.connection.ask((client) => client.compare(...ids));
    });
    await this.results.showMarkdown(`${base.name} and ${other.name}`, differenceMarkdown(base.name, other.name, difference));
  }

  private async query(given: unknown): Promise<void> {
    const profile = await this.wanted(given, "Profile to query");
    if (!profile) return;
    const prompt = `SQL over the tables of ${profile.name}`;
    const sql = await vscode.window.showInputBox({ prompt, value: this.lastQuery, ignoreFocusOut: true });
    if (sql === undefined || sql.trim() === "") return;
    this.lastQuery = sql;
    const id = await this.registry.idOf(profile);
    const result = await busy("Running the query", () => this.connection.ask((client) => client.query(id, sql)));
    if (result.rows.length < result.row_count) {
      const text = `The first ${result.rows.length} of ${result.row_count} rows are shown: add a LIMIT or an aggregate to the query.`;
      void vscode.window.showWarningMessage(text);
    }
    await this.results.showText(`query of ${profile.name}`, queryText(sql, result));
  }

  private async exportPerfetto(given: unknown): Promise<void> {
    const profile = await this.wanted(given, "Profile to export");
    if (!profile) return;
    const name = `${profile.name.replace(/\.nprof$/, "")}.pftrace`;
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const target = await vscode.window.showSaveDialog({
      ...(folder && { defaultUri: vscode.Uri.joinPath(folder, name) }),
      filters: { "Perfetto trace": ["pftrace"] },
    });
    if (!target) return;
    const id = await this.registry.idOf(profile);
    const trace = await busy(noticeText(`Exporting ${profile.name}`), () => this.connection.ask((client) => client.perfetto(id)));
    await vscode.workspace.fs.writeFile(target, new Uint8Array(trace));
    void vscode.window.showInformationMessage(`Wrote ${noticeText(basename(target.path))}: open it at ui.perfetto.dev.`);
  }

  private async selectTarget(): Promise<void> {
    const current = settings.target();
    const items = TARGETS.map(([label, description]) => ({ label, description, picked: label === current }));
    const chosen = await vscode.window.showQuickPick(items, { placeHolder: `Simulated on ${current} now` });
    if (chosen) await writeSetting("target", chosen.label);
  }

  private async showFinding(given: unknown): Promise<void> {
    const finding = findingOf(given);
    if (finding) await this.results.showMarkdown(finding.rule, findingMarkdown(finding));
  }

  private async showWhatIf(given: unknown): Promise<void> {
    const finding = findingOf(given);
    const profile = this.registry.current;
    if (!finding || !profile || finding.what_if === "") return;
    const id = await this.registry.idOf(profile);
    const gain = await busy("Simulating the change", () =>
      this.connection.ask((client) => client.whatIf(id, finding.what_if)),
    );
    void vscode.window.showInformationMessage(noticeText(whatIfText(gain)));
  }

  /** The profile that a menu gave, or that is in front, or chosen; else the user is asked. */
  private async wanted(given: unknown, question: string): Promise<ProfileRef | undefined> {
    if (given instanceof ProfileItem) return given.profile;
    if (given instanceof vscode.Uri) return profileAt(given);
    return this.timelines.active ?? this.registry.current ?? this.ask(question);
  }

  private async ask(question: string): Promise<ProfileRef | undefined> {
    const chosen = await pick(await this.registry.list(), question, []);
    return typeof chosen === "object" ? chosen : undefined;
  }
}

/** The finding that a menu or a light bulb gave. */
export function findingOf(given: unknown): Finding | undefined {
  if (given instanceof FindingItem) return given.finding;
  return typeof given === "object" && given !== null && "rule" in given ? (given as Finding) : undefined;
}

async function pick(
  profiles: readonly ProfileRef[],
  placeHolder: string,
  further: readonly string[],
): Promise<ProfileRef | string | undefined> {
  const items = [
    ...profiles.map((profile) => ({ label: profile.name, description: vscode.workspace.asRelativePath(profile.path), profile })),
    ...further.map((label) => ({ label, description: "", profile: undefined })),
  ];
  if (items.length === 0) {
    void vscode.window.showInformationMessage("No profile was found in this workspace: capture one first.");
    return undefined;
  }
  const chosen = await vscode.window.showQuickPick(items, { placeHolder, matchOnDescription: true });
  return chosen && (chosen.profile ?? chosen.label);
}

async function busy<T>(title: string, work: () => Promise<T>): Promise<T> {
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title }, work);
}

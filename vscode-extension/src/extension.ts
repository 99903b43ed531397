/** The extension's entry: registers everything, starts nothing. */

import * as vscode from "vscode";
import { CaptureTasks, TASK_TYPE } from "./commands/capture";
import { RESULT_SCHEME, ResultDocuments } from "./commands/documents";
import { EditorCommands } from "./commands/editor_commands";
import { findingOf, ProfileCommands } from "./commands/profile_commands";
import { DeviceDebugger } from "./debug/adapter";
import { DEBUG_TYPE } from "./debug/launch";
import { Stopping } from "./debug/stopping";
import { CapturedSources } from "./editor/captured_source";
import { LineDecorations } from "./editor/decorations";
import { FindingDiagnostics } from "./editor/diagnostics";
import { EditPreviews } from "./editor/edit_previews";
import { CostHover } from "./editor/hover";
import { FunctionLenses } from "./editor/lenses";
import { Mending } from "./editor/mending";
import { Navigation } from "./editor/navigation";
import { log, logError } from "./log";
import { ProfileData } from "./profiles/data";
import { ProfileRegistry } from "./profiles/registry";
import { Connection } from "./server/connection";
import { reportProblem } from "./server/problems";
import { settings } from "./settings";
import { CAPTURED_SCHEME } from "./source/captured";
import { DocumentCosts } from "./source/document_costs";
import { KeptViews } from "./timeline/kept_views";
import { Timelines } from "./timeline/timelines";
import { DevicesView } from "./views/devices_view";
import { FindingsView } from "./views/findings_view";
import { HierarchyView } from "./views/hierarchy_view";
import { ProfilesView } from "./views/profiles_view";

const PYTHON: vscode.DocumentSelector = { language: "python" };

export function activate(context: vscode.ExtensionContext): void {
  const { subscriptions } = context;
  const keep = <T extends vscode.Disposable>(part: T): T => {
    subscriptions.push(part);
    return part;
  };
  const folder = context.globalStorageUri.fsPath;
  void vscode.workspace.fs.createDirectory(context.globalStorageUri);
  const connection = keep(new Connection(folder));
  const registry = keep(new ProfileRegistry(connection, context.workspaceState));
  const data = keep(new ProfileData(connection, registry));
  const costs = keep(new DocumentCosts(data));
  const navigation = keep(new Navigation(connection, registry, costs, () => settings.followsCursor()));
  const timelines = keep(new Timelines(context.extensionUri, connection, registry, navigation, new KeptViews(context.workspaceState)));
  navigation.timelines = timelines;
  const results = new ResultDocuments();
  const mending = keep(new Mending(connection, costs, results));
  registerEditorFeatures(keep, costs, mending);
  keep(new EditPreviews(connection, costs));
  registerViews(keep, registry, data, folder);
  keep(vscode.workspace.registerTextDocumentContentProvider(RESULT_SCHEME, results));
  keep(
    vscode.workspace.registerTextDocumentContentProvider(CAPTURED_SCHEME, new CapturedSources(connection, registry)),
  );
  keep(vscode.tasks.registerTaskProvider(TASK_TYPE, new CaptureTasks()));
  registerDebugger(keep);
  const stopping = keep(new Stopping(connection, registry, costs, timelines));
  registerCommands(keep, {
    ...new ProfileCommands(connection, registry, timelines, results).handlers(),
    ...new EditorCommands(navigation, stopping, registry, timelines, context.workspaceState).handlers(),
    "neuron.mendFinding": (given?: unknown) => {
      const finding = findingOf(given);
      return finding && mending.mend(finding);
    },
    "neuron.restartServer": () => connection.restart(),
    "neuron.showLog": () => log().show(),
    "neuron.getStarted": () =>
      vscode.commands.executeCommand("workbench.action.openWalkthrough", `${context.extension.id}#getStarted`),
  });
}

/** Called when the window closes; what was registered is disposed by then, the server among it. */
export function deactivate(): void {
  log().info("The window closes.");
}

type Keep = <T extends vscode.Disposable>(part: T) => T;

function registerEditorFeatures(keep: Keep, costs: DocumentCosts, mending: Mending): void {
  keep(new LineDecorations(costs));
  keep(vscode.languages.registerCodeLensProvider(PYTHON, keep(new FunctionLenses(costs))));
  keep(vscode.languages.registerHoverProvider(PYTHON, new CostHover(costs)));
  const diagnostics = keep(new FindingDiagnostics(costs, mending));
  keep(
    vscode.languages.registerCodeActionsProvider(PYTHON, diagnostics, {
      providedCodeActionKinds: [vscode.CodeActionKind.QuickFix],
    }),
  );
}

function registerDebugger(keep: Keep): void {
  const device = new DeviceDebugger();
  keep(vscode.debug.registerDebugConfigurationProvider(DEBUG_TYPE, device));
  keep(vscode.debug.registerDebugAdapterDescriptorFactory(DEBUG_TYPE, device));
}

function registerViews(keep: Keep, registry: ProfileRegistry, data: ProfileData, folder: string): void {
  const profiles = keep(new ProfilesView(registry));
  keep(vscode.window.createTreeView("neuron.profiles", { treeDataProvider: profiles, canSelectMany: true }));
  keep(vscode.window.registerTreeDataProvider("neuron.hierarchy", keep(new HierarchyView(data))));
  keep(vscode.window.registerTreeDataProvider("neuron.findings", keep(new FindingsView(data))));
  const devices = keep(new DevicesView(folder));
  const view = keep(vscode.window.createTreeView("neuron.devices", { treeDataProvider: devices }));
  keep(view.onDidChangeVisibility(({ visible }) => devices.setVisible(visible)));
  if (view.visible) devices.setVisible(true);
}

/** Register commands whose errors become one message. */
function registerCommands(keep: Keep, handlers: Record<string, (...args: never[]) => unknown>): void {
  for (const [name, handler] of Object.entries(handlers)) {
    const run = async (...args: never[]): Promise<unknown> => {
      try {
        return await handler(...args);
      } catch (error) {
        reportProblem(error).catch(logError);
        return undefined;
      }
    };
    keep(vscode.commands.registerCommand(name, run));
  }
}

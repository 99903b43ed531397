/** The commands about the code in the editor: capture, spans of lines, the hottest lines. */

import * as vscode from "vscode";
import type { Stopping } from "../debug/stopping";
import type { Navigation } from "../editor/navigation";
import { profileAt, type ProfileRegistry } from "../profiles/registry";
import { settings, writeSetting } from "../settings";
import { cellOf, codeCells } from "../source/notebooks";
import type { Timelines } from "../timeline/timelines";
import { capture } from "./capture";
import { splitArguments } from "./command_line";

const LAST_ARGUMENTS_KEY = "neuron.lastArguments";

export class EditorCommands {
  constructor(
    private readonly navigation: Navigation,
    private readonly stopping: Stopping,
    private readonly registry: ProfileRegistry,
    private readonly timelines: Timelines,
    private readonly memory: vscode.Memento,
  ) {}

  /** Commands by name. */
  handlers(): Record<string, (...args: never[]) => unknown> {
    return {
      "neuron.captureFile": (uri?: vscode.Uri) => this.capture(uri, []),
      "neuron.captureNotebook": () => this.captureNotebook(),
      "neuron.captureCell": (cell?: vscode.NotebookCell) => this.captureCell(cell),
      "neuron.captureWithArguments": (uri?: vscode.Uri) => this.captureWithArguments(uri),
      "neuron.showSpans": (...place: unknown[]) => this.atLines(place, (...lines) => this.navigation.showSpans(...lines)),
      "neuron.zoomIntoInstructions": (...place: unknown[]) =>
        this.atLines(place, (...lines) => this.navigation.zoom(...lines)),
      "neuron.debugLine": (...place: unknown[]) => this.atLines(place, (uri, first) => this.stopping.atLine(uri, first)),
      "neuron.debugSpan": () => this.stopping.atSpan(),
      "neuron.nextHottestLine": () => {
        const editor = vscode.window.activeTextEditor;
        return editor && this.navigation.nextHottestLine(editor);
      },
      "neuron.showChanges": (given?: vscode.Uri) => {
        const uri = given ?? vscode.window.activeTextEditor?.document.uri;
        return uri && this.navigation.showChanges(uri);
      },
      "neuron.openPlace": (file: string, line: number) => this.navigation.openPlace(file, line),
      "neuron.toggleDecorations": () => writeSetting("decorations.enabled", !settings.showsDecorations()),
    };
  }

  private async captureWithArguments(uri?: vscode.Uri): Promise<void> {
    const value = this.memory.get(LAST_ARGUMENTS_KEY, "");
    const prompt = "Arguments of the script, as a shell takes them";
    const text = await vscode.window.showInputBox({ prompt, value, placeHolder: "--epochs 1", ignoreFocusOut: true });
    if (text === undefined) return;
    await this.memory.update(LAST_ARGUMENTS_KEY, text);
    await this.capture(uri, splitArguments(text));
  }

  private async capture(uri: vscode.Uri | undefined, args: readonly string[]): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    const current = document && (cellOf(document)?.notebook.uri ?? document.uri);
    const script = uri instanceof vscode.Uri ? uri : current;
    if (script?.scheme !== "file") {
      void vscode.window.showInformationMessage("Open a Python script first: the command captures the current file.");
      return;
    }
    await this.captureAt(script, args);
  }

  private async captureNotebook(): Promise<void> {
    const notebook = vscode.window.activeNotebookEditor?.notebook;
    if (notebook?.uri.scheme === "file") await this.captureAt(notebook.uri, []);
    else void vscode.window.showInformationMessage("Open a notebook first, and save it.");
  }

  /** Run the cells before one, and record that one: what a menu gave, else the one that is selected. */
  private async captureCell(given?: vscode.NotebookCell): Promise<void> {
    const editor = vscode.window.activeNotebookEditor;
    const cell = given ?? (editor && editor.notebook.cellAt(editor.selection.start));
    const number = cell ? codeCells(cell.notebook).indexOf(cell) + 1 : 0;
    if (cell && number > 0 && cell.notebook.uri.scheme === "file") await this.captureAt(cell.notebook.uri, [], number);
    else void vscode.window.showInformationMessage("Select a code cell of a saved notebook first.");
  }

  private async captureAt(script: vscode.Uri, args: readonly string[], cell?: number): Promise<void> {
    const path = await capture(script, args, cell);
    if (path === undefined) {
      void vscode.window.showErrorMessage("The capture wrote no profile: its terminal says why.");
      return;
    }
    const profile = profileAt(vscode.Uri.file(path));
    await this.registry.choose(profile);
    await this.timelines.open(profile, vscode.ViewColumn.Beside);
  }

  /** Lines that a link named, or those that are selected. */
  private async atLines(
    place: readonly unknown[],
    action: (uri: vscode.Uri, first: number, last: number) => Promise<void>,
  ): Promise<void> {
    const [uri, first, last] = place;
    if (typeof first === "number" && typeof last === "number") {
      await action(vscode.Uri.from(uri as vscode.Uri), first, last);
      return;
    }
    const editor = vscode.window.activeTextEditor;
    if (editor) await action(editor.document.uri, editor.selection.start.line, editor.selection.end.line);
  }
}

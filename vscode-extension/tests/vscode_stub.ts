/** What the extension uses of the module "vscode", as far as tests of single classes need it. */

type Listener<T> = (event: T) => unknown;

export class Disposable {
  constructor(private readonly end: () => void) {}
  dispose(): void {
    this.end();
  }
}

export class EventEmitter<T> {
  private readonly listeners = new Set<Listener<T>>();
  readonly event = (listener: Listener<T>): Disposable => {
    this.listeners.add(listener);
    return new Disposable(() => this.listeners.delete(listener));
  };
  fire(event: T): void {
    for (const listener of [...this.listeners]) listener(event);
  }
  dispose(): void {
    this.listeners.clear();
  }
}

export class Position {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
}

export class Range {
  readonly start: Position;
  readonly end: Position;
  constructor(line: number, character: number, endLine: number, endCharacter: number) {
    this.start = new Position(line, character);
    this.end = new Position(endLine, endCharacter);
  }
  with(start: Position): Range {
    return new Range(start.line, start.character, this.end.line, this.end.character);
  }
}

export enum DiagnosticSeverity {
  Error,
  Warning,
  Information,
}

export class Diagnostic {
  source?: string;
  code?: string;
  constructor(
    readonly range: Range,
    readonly message: string,
    readonly severity: DiagnosticSeverity,
  ) {}
}

/** What stands in all collections of diagnostics, by address. */
export const diagnostics = new Map<string, readonly Diagnostic[]>();

export const languages = {
  createDiagnosticCollection: () => ({
    set: (uri: { toString(): string }, found: readonly Diagnostic[]) => void diagnostics.set(uri.toString(), found),
    delete: (uri: { toString(): string }) => void diagnostics.delete(uri.toString()),
    clear: () => diagnostics.clear(),
    dispose: () => undefined,
  }),
};

export class ThemeColor {
  constructor(readonly id: string) {}
}

export const Uri = {
  parse: (text: string) => ({ text, toString: () => text }),
};
export const DecorationRangeBehavior = { ClosedClosed: 1 };
export const OverviewRulerLane = { Right: 4 };

interface ConfigurationEvent {
  affectsConfiguration(name: string): boolean;
}

/** Settings by their whole name; `changed` tells of a change. */
export const configuration = {
  values: new Map<string, unknown>(),
  changed: new EventEmitter<ConfigurationEvent>(),
  set(name: string, value: unknown): void {
    this.values.set(name, value);
    this.changed.fire({ affectsConfiguration: (section) => name === section || name.startsWith(`${section}.`) });
  },
};
export const trusted = new EventEmitter<undefined>();

/** Documents that are edited or closed. */
export const documents = { changed: new EventEmitter<unknown>(), closed: new EventEmitter<unknown>() };

export const workspace = {
  isTrusted: true,
  workspaceFolders: undefined as { uri: { fsPath: string; path: string; scheme: string } }[] | undefined,
  onDidChangeConfiguration: configuration.changed.event,
  onDidGrantWorkspaceTrust: trusted.event,
  onDidChangeWorkspaceFolders: new EventEmitter<unknown>().event,
  onDidChangeTextDocument: documents.changed.event,
  onDidCloseTextDocument: documents.closed.event,
  getWorkspaceFolder: () => undefined,
  getConfiguration: (section: string) => ({
    get: <T>(name: string, fallback: T): T => (configuration.values.get(`${section}.${name}`) ?? fallback) as T,
  }),
};

/** The editors in sight; `shown` tells that they are others. */
export const editors = { visible: [] as unknown[], shown: new EventEmitter<unknown>(), scrolled: new EventEmitter<unknown>() };

export const window = {
  get visibleTextEditors() {
    return editors.visible;
  },
  onDidChangeVisibleTextEditors: editors.shown.event,
  onDidChangeTextEditorVisibleRanges: editors.scrolled.event,
  createTextEditorDecorationType: (options: { after?: unknown }) => ({ isText: "after" in options, dispose: () => undefined }),
  createOutputChannel: () => {
    const say = (): void => undefined;
    return { info: say, warn: say, error: say, debug: say, show: say };
  },
};

export const extensions = { getExtension: () => undefined };

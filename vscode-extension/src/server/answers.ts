/** What the server's JSON routes answer. Times in ns, shares from 0 to 1. */

export interface ProfileEntry {
  readonly id: string;
  readonly name: string;
  readonly location: string;
}

export interface SourceFile {
  readonly path: string;
  readonly sha256: string | null;
}

export interface Sources {
  readonly files: readonly SourceFile[];
  /** How many the profile has. */
  readonly instructions: number;
}

export interface SourceText {
  readonly path: string;
  readonly sha256: string | null;
  readonly text: string | null;
}

export interface Work {
  readonly device_ns: number;
  readonly share: number;
  readonly backward_ns: number;
  readonly calls: number;
  readonly instructions: number;
  readonly hbm_bytes: number;
  readonly flops: number;
  readonly engine_ns: Readonly<Record<string, number>>;
}

/**
 * Cost of a line alone; `own_code` with what the libraries do that it called, down to the next line of the user's;
 * `total` with all that it called.
 */
export interface LineWork extends Work {
  readonly line: number;
  readonly own_code: Work;
  readonly total: Work;
}

export interface FunctionWork extends Work {
  readonly name: string;
  readonly line: number;
  readonly first: number;
  readonly last: number;
  readonly is_kernel: boolean;
  readonly own_code: Work;
  readonly total: Work & { readonly mfu: number };
}

export interface FileCosts {
  readonly path: string;
  readonly device_ns: number;
  readonly lines: readonly LineWork[];
  readonly functions: readonly FunctionWork[];
}

/** An error that simulating an edit met. */
export interface Problem {
  /** As the profile names it; empty where no file of the user's has part in it. */
  readonly file: string;
  readonly line: number;
  readonly message: string;
  readonly kind: "rule" | "syntax" | "error";
}

/** What the kernels that a file takes part in cost, as captured and with another text; null where nothing is known. */
export interface Preview {
  /** None where the file takes part in no kernel call that can be made again. */
  readonly kernels: readonly string[];
  readonly problems: readonly Problem[];
  readonly before: FileCosts | null;
  readonly after: FileCosts | null;
  /** A newer text was asked about meanwhile. */
  readonly superseded?: boolean;
}

export interface Place {
  readonly file: string;
  readonly line: number;
  readonly function: string;
  readonly module: string;
  readonly operation: string;
}

export interface Finding {
  readonly rule: string;
  readonly title: string;
  readonly change: string;
  readonly place: Place;
  readonly gain_ns: number | null;
  readonly device_gain_ns: number | null;
  readonly total_ns: number;
  readonly gain: number;
  readonly what_if: string;
  readonly evidence: Readonly<Record<string, unknown>>;
  /** The exact line, where that is a library's and `place` the user's that called it; its file is empty otherwise. */
  readonly library_place: Place;
  /** Whether its rule has an editor, which may derive an edit. */
  readonly has_editor: boolean;
}

/** The edit that mends a finding: the file's text with it, made of the text that was captured. */
export interface Edit {
  /** Why none can be derived; null where one is. */
  readonly reason: string | null;
  readonly title: string | null;
  readonly text: string | null;
}

export interface ModuleNode {
  readonly path: string;
  readonly name: string;
  readonly device_ns: number;
  readonly own_ns: number;
  readonly count: number;
  readonly share: number;
  readonly children: readonly ModuleNode[];
}

export interface LinePlace {
  readonly file: string;
  readonly line: number;
  readonly function: string;
  readonly device_ns: number;
  readonly share: number;
}

export interface Hierarchy {
  readonly device_ns: number;
  readonly modules: ModuleNode;
  readonly operations: readonly { name: string; device_ns: number; count: number; share: number }[];
  readonly lines: readonly LinePlace[];
}

export interface Gain {
  readonly change: string;
  readonly device_ns: number;
  readonly device_after_ns: number;
  readonly total_ns: number;
  readonly total_after_ns: number;
  readonly total_gain_ns: number;
  readonly total_gain: number;
}

export interface FoundSpan {
  readonly track: string;
  readonly table: string;
  readonly row: number;
  readonly start_ns: number;
  readonly duration_ns: number;
  readonly name: string;
}

export interface FoundSpans {
  readonly spans: readonly FoundSpan[];
  readonly truncated: boolean;
}

export interface SourceFrame {
  readonly file: string;
  readonly line: number;
  readonly function: string;
}

export interface SpanDetails {
  readonly row: Readonly<Record<string, unknown>>;
  readonly stack: readonly SourceFrame[];
}

/** Where a debugger has to stop. */
export interface Stop {
  readonly place: { readonly file: string; readonly line: number };
  /** At which hit of a breakpoint at the line, from 1; 0 where its executions are not known. */
  readonly hit: number;
  /** The execution, from 1, of `executions`; 0 where they are not known. */
  readonly number: number;
  readonly executions: number;
  /** What it took of the host or the device, whichever is longer, and the median of all. */
  readonly cost_ns: number;
  readonly typical_ns: number;
}

export interface QueryResult {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  readonly row_count: number;
}

export interface Delta {
  readonly key: { readonly module: string; readonly operation: string; readonly backward: boolean };
  readonly change: string;
  readonly base_ns: number;
  readonly new_ns: number;
  readonly delta_ns: number;
}

export interface Difference {
  readonly base_device_ns: number;
  readonly new_device_ns: number;
  readonly delta_device_ns: number;
  readonly deltas: readonly Delta[];
}

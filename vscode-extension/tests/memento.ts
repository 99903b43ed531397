import type { Memento } from "vscode";

/** A memory that lasts as long as its test. */
export function memento(): Memento {
  const values = new Map<string, unknown>();
  return {
    keys: () => [...values.keys()],
    get: (key: string, fallback?: unknown) => values.get(key) ?? fallback,
    update: (key: string, value: unknown) => Promise.resolve(void values.set(key, value)),
  } as Memento;
}

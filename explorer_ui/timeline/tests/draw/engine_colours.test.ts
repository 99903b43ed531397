import { expect, test } from "vitest";
import { engineSlot, NO_NAMES, OTHER_SLOT } from "../../src/draw/engine_colours.js";
import { inkTable } from "../../src/draw/inks.js";
import { LIGHT } from "../../src/draw/theme.js";
import type { Track } from "../../src/data/track.js";

const track = (level: string, name: string): Track => ({ level, name }) as Track;

test("an engine's spans have its colour, but for those in which it only waits", () => {
  const tensor = engineSlot(track("engine", "Tensor"), "MATMUL", NO_NAMES);
  expect(engineSlot(track("engine", "TensorMatrix"), "MATMUL", NO_NAMES)).toBe(tensor);
  expect(engineSlot(track("engine", "Vector"), "TENSOR_COPY", NO_NAMES)).not.toBe(tensor);
  expect(engineSlot(track("engine", "Tensor"), "EVENT_SEMAPHORE", { ...NO_NAMES, control: ["EVENT_SEMAPHORE"] })).toBe(OTHER_SLOT);
});

test("an operation has the colour of the engine that it keeps busy", () => {
  const engines = { ...NO_NAMES, operations: { hlo: { "dot.1": "tensor" } } };
  const tensor = engineSlot(track("engine", "Tensor"), "MATMUL", NO_NAMES);
  expect(engineSlot(track("hlo", "HLO operations"), "dot.1", engines)).toBe(tensor);
  expect(engineSlot(track("hlo", "HLO operations"), "copy.2", engines)).toBe(OTHER_SLOT);
});

test("dimmed colours are faint, the others as before", () => {
  const [plain, dimmed] = [inkTable(LIGHT), inkTable(LIGHT, new Set([4]))];
  expect(dimmed.solid.plain[1]).toEqual(plain.solid.plain[1]);
  expect(dimmed.solid.plain[4]).toEqual(plain.solid.faint[4]);
});

import { describe, expect, it } from "vitest";
import { checkPython, choosePython, NoPythonError, type Verdict } from "../src/server/python";

const check =
  (verdicts: Record<string, Verdict>) =>
  (executable: string): Promise<Verdict> =>
    Promise.resolve(verdicts[executable] ?? "does not start");

describe("choosePython", () => {
  const candidates = [
    { executable: "one", origin: "setting" },
    { executable: "two", origin: "PATH" },
  ];

  it("takes the first that has Neuron Tools", async () =>
    expect(await choosePython(candidates, check({ one: "lacks Neuron Tools", two: "has Neuron Tools" }))).toBe("two"));

  it("says where it looked and what to do", async () => {
    const choosing = choosePython(candidates, check({ one: "lacks Neuron Tools" }));
    await expect(choosing).rejects.toThrow(NoPythonError);
    await expect(choosing).rejects.toThrow(/one \(setting\) lacks Neuron Tools; two \(PATH\) does not start.*pip install/);
  });

  it("has a sentence for no Python at all", async () =>
    expect(choosePython([], check({}))).rejects.toThrow("no Python was found"));
});

describe("checkPython", () => {
  it("tells a program that is not there", async () => expect(await checkPython("/no/such/python")).toBe("does not start"));
  it("tells a program that is no Python", async () => expect(await checkPython("/bin/false")).toBe("does not start"));
});

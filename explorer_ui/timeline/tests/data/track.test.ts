import { expect, it } from "vitest";
import { isIdleIn, readSummary, type TracksAnswer, USE_PLACES } from "../../src/data/track.js";

const bare = { rank: 0, core: 0, table: "Instruction", spans: 9, depths: 1, start_ns: 0, end_ns: 9, unit: "", counter: false, least: 0, greatest: 0 };
const of = (level: string, name: string, headings: string[], more: object = {}) => ({ ...bare, id: `p0/${headings.length}/${name}`, level, name, headings, ...more });
const core = (number: number): string[] => ["rank 0", `NeuronCore ${number}`];

function summaryOf(tracks: object[]) {
  const answer = { profile: "p", name: "p", complete: true, origin_ns: "0", start_ns: 0, end_ns: 9, tracks };
  return readSummary(answer as unknown as TracksAnswer);
}

it("puts the use of each engine before the other counters of its core", () => {
  const { tracks } = summaryOf([
    of("engine", "Tensor", core(0), { use: true }),
    of("engine", "Vector", core(0), { use: true }),
    of("counter", "PendingDma", [...core(0), "Counters"], { counter: true }),
    of("engine", "Tensor", core(1), { use: true }),
    of("throttle", "Throttling", core(1)),
  ]);
  expect(tracks.map((track) => track.name)).toEqual([
    "Tensor", "Vector", "Tensor active", "Vector active", "PendingDma", "Tensor", "Throttling", "Tensor active",
  ]);
  const [, , use] = tracks;
  expect(use).toMatchObject({ place: USE_PLACES, listed: 0, isCounter: true, unit: "%", least: 0, greatest: 100 });
  expect(use!.headings).toEqual([...core(0), "Counters"]);
});

it("takes the use of an engine for idle where the engine is", () => {
  const [, use] = summaryOf([of("engine", "Tensor", core(0), { use: true })]).tracks;
  expect([isIdleIn(use!, undefined), isIdleIn(use!, { count: 3, busy_share: 0.5 })]).toEqual([true, false]);
});

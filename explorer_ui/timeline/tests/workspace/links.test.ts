import { beforeEach, describe, expect, it, vi } from "vitest";
import { withChanges } from "../../src/workspace/address.js";
import { meaningOf, type PanelInfo } from "../../src/workspace/links.js";
import { contentAddress, contentKey } from "../../src/workspace/requests.js";

const OPERATORS: PanelInfo = { name: "operators", title: "Operators", path: "/operators", parameters: ["by", "grid"], kept: ["grid"] };
const SOURCE: PanelInfo = { name: "source", title: "Source", path: "/source", parameters: ["file"], kept: [] };
const TIMELINE: PanelInfo = { name: "timeline", title: "Timeline", path: "/timeline", parameters: ["compare"], kept: [] };
const PANELS = [OPERATORS, SOURCE, TIMELINE];
const NOW = "profile=p&start_ns=1&end_ns=9";

function meaning(address: string, from: PanelInfo | null = null): ReturnType<typeof meaningOf> {
  return meaningOf(new URL(`http://here/proxy${address}`), "/proxy", "/workspace", PANELS, from);
}

describe("a link in the workspace", () => {
  beforeEach(() => vi.stubGlobal("location", { search: `?${NOW}&sel=line:a.py:3&t=2-5` }));

  it("to a line chooses it and shows the source", () => {
    expect(meaning(`/source?${NOW}&file=/a/b.py&line=7`)).toEqual({
      changes: { file: "/a/b.py", line: "7", sel: "line:/a/b.py:7", span: null },
      panel: "source",
    });
  });

  it("to the spans of a module chooses the module", () => {
    expect(meaning(`/timeline?${NOW}&search=layer=/model/0`)?.changes).toEqual({ sel: "module:/model/0", span: null });
  });

  it("within a panel changes what is that panel's, and nothing else", () => {
    expect(meaning(`/workspace?${NOW}&panel=operators&by=line`, OPERATORS)).toEqual({ changes: { by: "line", grid: null }, panel: null });
  });

  it("to a step changes the scope and lets the timeline follow", () => {
    const changes = meaning("/workspace?profile=p&start_ns=9&end_ns=20&sel=old")!.changes;
    expect(changes).toEqual({ start_ns: "9", end_ns: "20", scope: null, t: null, selection: null });
    expect(withChanges(`?${NOW}&sel=new&t=2-5`, changes)).toBe("profile=p&start_ns=9&end_ns=20&sel=new");
  });

  it("to a page without a panel leads out", () => {
    expect(meaning(`/export?${NOW}`)).toBeNull();
  });
});

it("a panel is drawn anew only for what it depends on", () => {
  const before = new URLSearchParams(`${NOW}&by=line&sel=a&file=x&grid=1`);
  expect(contentAddress("/workspace", OPERATORS, before)).toBe(`/workspace?panel=operators&${NOW}&by=line&grid=1`);
  expect(contentKey(OPERATORS, new URLSearchParams(`${NOW}&by=line&sel=b&t=1-2&grid=2`))).toBe(contentKey(OPERATORS, before));
  expect(contentKey(OPERATORS, new URLSearchParams(`${NOW}&by=module`))).not.toBe(contentKey(OPERATORS, before));
});

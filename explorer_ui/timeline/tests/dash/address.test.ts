import { describe, expect, it } from "vitest";
import { sourceAddress, withView } from "../../src/dash/address.js";
import { viewFrom } from "../../src/dash/properties.js";
import { EMPTY_VIEW } from "../../src/view/view_state.js";

describe("the address", () => {
  it("holds what differs from the default, beside what others put there", () => {
    const query = withView("?profile=abc", { ...EMPTY_VIEW, range: { startNs: 10.4, endNs: 99.2 }, pinned: ["p0/hlo"] });
    const params = new URLSearchParams(query);
    expect(Object.fromEntries(params)).toEqual({ profile: "abc", start_ns: "10", end_ns: "100", pinned: '["p0/hlo"]' });
    expect(withView(query, EMPTY_VIEW)).toBe("profile=abc");
  });

  it("of a source is encoded", () => {
    expect(sourceAddress("/source?file={file}&line={line}", "a b&c.py", 7)).toBe("/source?file=a%20b%26c.py&line=7");
  });

  it("gives no view for ranges that make no sense", () => {
    expect(viewFrom({ profile: "a", range: [5, 5] }).range).toBeNull();
    expect(viewFrom({ profile: "a", range: [5, 6] }).range).toEqual({ startNs: 5, endNs: 6 });
  });
});

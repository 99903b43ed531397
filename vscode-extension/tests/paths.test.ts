import { describe, expect, it } from "vitest";
import { candidateEnds, isInside, mapPath, readMappings, recordedPath } from "../src/source/paths";

const MAPPINGS = readMappings(
  { "/ci/project/": "${workspaceFolder}", "/ci/project/vendor": "/opt/vendor", "": "/x" },
  "/home/me/project",
);

describe("mapPath", () => {
  it("takes the longest rule", () => {
    expect(mapPath("/ci/project/a/train.py", MAPPINGS)).toBe("/home/me/project/a/train.py");
    expect(mapPath("/ci/project/vendor/x.py", MAPPINGS)).toBe("/opt/vendor/x.py");
  });

  it("maps whole folders only", () => {
    expect(mapPath("/ci/projects/train.py", MAPPINGS)).toBeUndefined();
    expect(mapPath("/other", MAPPINGS)).toBeUndefined();
  });
});

describe("recordedPath", () => {
  const recorded = ["/ci/project/a/train.py", "/ci/project/b/train.py", "/usr/lib/nn.py"];

  it("is the file itself, or by a rule", () => {
    expect(recordedPath("/usr/lib/nn.py", recorded, [], undefined)).toBe("/usr/lib/nn.py");
    expect(recordedPath("/home/me/project/b/train.py", recorded, MAPPINGS, undefined)).toBe("/ci/project/b/train.py");
  });

  it("is what shares the longest end", () =>
    expect(recordedPath("/w/b/train.py", recorded, [], "/w")).toBe("/ci/project/b/train.py"));

  it("does not guess between two", () => expect(recordedPath("/w/train.py", recorded, [], "/w")).toBeUndefined());

  it("does not take another file of the same workspace", () =>
    expect(recordedPath("/w/b/model.py", ["/w/a/model.py"], [], "/w")).toBeUndefined());

  it("has nothing for an unknown name", () =>
    expect(recordedPath("/w/other.py", recorded, [], "/w")).toBeUndefined());
});

describe("candidateEnds", () => {
  it("begins with the longest", () => expect(candidateEnds("/a/b/c.py")).toEqual(["a/b/c.py", "b/c.py", "c.py"]));
  it("refuses to go upwards", () => expect(candidateEnds("/a/../../etc/passwd")).toEqual([]));
});

describe("isInside", () => {
  it.each([
    ["/a/b", "/a", true],
    ["/a", "/a/", true],
    ["/ab", "/a", false],
    ["/a", "/", true],
  ])("%s in %s: %s", (path, folder, inside) => expect(isInside(path, folder)).toBe(inside));
});

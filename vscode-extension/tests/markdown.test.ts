import { describe, expect, it } from "vitest";
import { noticeText, plainText, shortened, table } from "../src/text/markdown";

describe("plainText", () => {
  it.each([
    ["[x](command:evil)", "\\[x\\]\\(command\\:evil\\)"],
    ["<img src=x>", "\\<img src=x\\>"],
    ["a | b\nc", "a \\| b c"],
    ["https://evil.example", "https\\://evil\\.example"],
    ["$(trash)", "\\$\\(trash\\)"],
  ])("takes the meaning out of %j", (text, plain) => expect(plainText(text)).toBe(plain));

  it("cuts what nobody reads", () => expect(plainText("x".repeat(100_000)).length).toBeLessThan(400));
});

describe("noticeText", () => {
  it("leaves no link in it", () =>
    expect(noticeText("a [b](command:workbench.action.quit)\nc")).toBe("a [b] (command:workbench.action.quit) c"));
});

describe("table", () => {
  it("has a rule under its head", () =>
    expect(table(["a", "b"], [["1", "2"]])).toBe("| a | b |\n| :-- | --: |\n| 1 | 2 |"));
});

describe("shortened", () => {
  it("leaves what fits", () => expect(shortened("abc", 3)).toBe("abc"));
  it("marks what it cut", () => expect(shortened("abcd", 3)).toBe("ab…"));
});

import { describe, expect, it } from "vitest";
import { KeptViews } from "../src/timeline/kept_views";
import { memento } from "./memento";

const view = (page: string, profile: string, savedAt: number) => ({ page, profile, view: { savedAt }, savedAt });

describe("KeptViews", () => {
  it("gives each page its own view, and a page without a name the last one of its profile", async () => {
    const views = new KeptViews(memento());
    for (const [page, profile, at] of [["a", "/p", 1], ["b", "/p", 2], ["c", "/q", 3]] as const) {
      await views.keep(view(page, profile, at));
    }
    expect(views.of("/p", "a")?.savedAt).toBe(1);
    expect(views.of("/p", undefined)?.page).toBe("b");
    expect(views.of("/p", "z")).toBeUndefined();
    expect(views.of("/q", "a")).toBeUndefined();
  });

  it("keeps the last view of a page, and forgets one that was closed", async () => {
    const views = new KeptViews(memento());
    await views.keep(view("a", "/p", 1));
    await views.keep(view("a", "/p", 2));
    expect(views.of("/p", "a")?.savedAt).toBe(2);
    await views.forget("a");
    expect(views.of("/p", undefined)).toBeUndefined();
  });

  it("keeps a limited number", async () => {
    const views = new KeptViews(memento());
    for (let page = 0; page < 100; page += 1) await views.keep(view(`p${page}`, "/p", page));
    expect(views.of("/p", "p0")).toBeUndefined();
    expect(views.of("/p", "p99")?.savedAt).toBe(99);
  });
});

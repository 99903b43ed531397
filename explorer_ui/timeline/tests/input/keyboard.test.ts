// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Keyboard } from "../../src/input/keyboard.js";

const root = document.createElement("div");
const field = document.createElement("input");
const body = document.createElement("div");
body.tabIndex = 0;
root.append(field, body);

describe("keys", () => {
  const act = vi.fn();
  const onHeld = vi.fn();
  let keyboard: Keyboard;
  const press = (target: HTMLElement, key: string, options: KeyboardEventInit = {}): void => {
    target.focus();
    target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...options }));
  };

  beforeEach(() => {
    vi.clearAllMocks();
    document.body.append(root);
    keyboard = new Keyboard(root, { act, onHeld });
  });
  afterEach(() => {
    keyboard.destroy();
    root.remove();
  });

  it("act while the timeline has the focus", () => {
    press(body, "n");
    press(body, "N");
    press(body, "ArrowRight");
    expect(act.mock.calls.flat()).toEqual(["hit-next", "hit-previous", "span-next"]);
  });

  it("move and zoom for as long as they are held", () => {
    press(body, "d");
    press(body, "d");
    expect(onHeld).toHaveBeenCalledOnce();
    expect(onHeld.mock.calls[0]![0]).toBeGreaterThan(0);
  });

  it("do nothing while a text is typed, elsewhere, or with Ctrl", () => {
    press(field, "n");
    press(body, "n", { ctrlKey: true });
    body.blur();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true }));
    expect(act).not.toHaveBeenCalled();
  });

  it("act at once, without a click, where the page has one timeline", () => {
    root.className = "nt";
    body.blur();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }));
    root.className = "";
    expect(act).toHaveBeenCalledWith("help");
  });

  it("act without the focus where the pointer is over the timeline and nothing else has it", () => {
    body.blur();
    root.dispatchEvent(new Event("pointerenter"));
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true }));
    expect(act).toHaveBeenCalledWith("fit-all");
  });
});

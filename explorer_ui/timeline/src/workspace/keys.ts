/** Keys of the whole workspace. They do nothing while a text is written. */

export interface KeyTarget {
  /** Bring the panel of a number to the front, and put the focus into it. */
  onPanel(number: number): void;
  /** Go to the panel before or after the one with the focus. */
  onNextPanel(by: 1 | -1): void;
  onEnlarge(): void;
  onFocusMode(): void;
  /** Go to the step before or after the one that is shown. */
  onStep(by: 1 | -1): void;
  onClear(): void;
  /** Of a capture that runs: show the newest step, and each that follows. */
  onFollow(): void;
}

export function listenToKeys(target: KeyTarget, signal: AbortSignal): void {
  const press = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || takesText(event.target)) return;
    if (/^[1-9]$/.test(event.key)) target.onPanel(Number(event.key));
    else if (event.key === "F6") target.onNextPanel(event.shiftKey ? -1 : 1);
    else if (event.key === "e") target.onEnlarge();
    else if (event.key === "E") target.onFocusMode();
    else if (event.key === "[") target.onStep(-1);
    else if (event.key === "]") target.onStep(1);
    else if (event.key === "l") target.onFollow();
    else if (event.key === "Escape") target.onClear();
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", press, { signal });
}

function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

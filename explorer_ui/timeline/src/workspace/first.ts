/** What is seen first is drawn first: all else waits for it, but not for long. */

const LONGEST_MS = 1500;
const LOOK_MS = 30;

export class First {
  private readonly since = performance.now();
  private readonly timer: ReturnType<typeof setInterval>;
  private over = false;

  constructor(
    private readonly isDrawn: () => boolean,
    private readonly onOver: () => void,
  ) {
    this.timer = setInterval(() => this.look(), LOOK_MS);
  }

  /** Whether all else may be asked for. */
  get isOver(): boolean {
    return this.over;
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    if (!this.isDrawn() && performance.now() - this.since < LONGEST_MS) return;
    this.over = true;
    this.stop();
    this.onOver();
  }
}

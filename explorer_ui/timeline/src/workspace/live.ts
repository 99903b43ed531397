/** Follows a capture while it runs: asks what is new, until it is complete. */

/** What a capture has written by now. */
export interface News {
  readonly complete: boolean;
  readonly end_ns: number;
  /** Steps that are finished. */
  readonly steps: number;
  readonly newest: { readonly number: number; readonly start_ns: number; readonly end_ns: number } | null;
}

const EVERY_MS = 2000;

export class Live {
  private profile = "";
  private asking: AbortController | null = null;
  private before = "";

  /** @param onNews Something was written since the last time; the first answer is no news of a complete profile. */
  constructor(
    private readonly root: string,
    private readonly onNews: (news: News) => void,
  ) {}

  /** Follow a profile; the one that is followed already goes on. */
  follow(profile: string): void {
    if (profile === this.profile) return;
    this.stop();
    this.profile = profile;
    this.before = "";
    this.asking = new AbortController();
    if (profile) void this.watch(profile, this.asking.signal);
  }

  stop(): void {
    this.asking?.abort();
    this.profile = "";
  }

  private async watch(profile: string, signal: AbortSignal): Promise<void> {
    let isRunning = true;
    while (isRunning) {
      const news = await ask(`${this.root}/workspace/live/${encodeURIComponent(profile)}`, signal);
      if (signal.aborted) return;
      const text = JSON.stringify(news);
      const isNews = this.before !== "" || news?.complete === false;
      if (news && isNews && text !== this.before) this.onNews(news);
      if (news) this.before = text;
      isRunning = news?.complete === false;
      if (isRunning) await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }
}

/** What the server says; null where it cannot. */
async function ask(address: string, signal: AbortSignal): Promise<News | null> {
  try {
    const answer = await fetch(address, { signal });
    return answer.ok ? ((await answer.json()) as News) : null;
  } catch {
    return null;
  }
}

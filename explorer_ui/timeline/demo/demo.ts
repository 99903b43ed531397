/** The demo page: a timeline of a hundred million made-up spans, without a server. */

import { createTimeline } from "../src/index.js";
import { DemoSource } from "./demo_source.js";

const container = document.querySelector<HTMLElement>("#timeline");
if (container) createTimeline(container, { source: new DemoSource(), theme: "system" });

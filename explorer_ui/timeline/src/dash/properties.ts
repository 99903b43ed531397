/** Dash properties as options and view of the engine. */

import type { TimelineOptions } from "../options.js";
import { groupingOf } from "../view/grouping.js";
import type { TimeRange } from "../view/time_range.js";
import type { Highlight, Marker, SpanRef, TimelineView } from "../view/view_state.js";

/** A profile that the timeline's is compared with. */
export interface Compared {
  readonly profile: string;
  readonly name?: string | null;
  readonly shift_ns?: number | null;
}

/** Properties of `NeuronTimeline`; times are pairs of ns. */
export interface ComponentProps {
  readonly id?: string;
  readonly profile: string;
  readonly compare?: string | readonly (string | Compared)[] | null;
  readonly data_url?: string;
  readonly range?: readonly [number, number] | null;
  readonly selection?: readonly [number, number] | null;
  readonly span?: SpanRef | null;
  readonly pinned?: readonly string[];
  readonly collapsed?: readonly string[];
  readonly expanded?: readonly string[];
  readonly highlight?: Highlight | null;
  readonly markers?: readonly Marker[];
  readonly search?: string;
  readonly grouping?: string;
  readonly scope?: readonly [number, number] | null;
  readonly theme?: "light" | "dark" | "system";
  readonly painter?: "auto" | "webgl2" | "canvas2d";
  readonly chrome?: boolean;
  readonly writes_address?: boolean;
  readonly source_address?: string;
  readonly className?: string;
  readonly style?: object;
  readonly setProps?: (props: Record<string, unknown>) => void;
}

/** The view that properties ask for. */
export function viewFrom(props: ComponentProps): TimelineView {
  return {
    range: rangeFrom(props.range),
    selection: rangeFrom(props.selection),
    span: props.span ?? null,
    pinned: props.pinned ?? [],
    collapsed: props.collapsed ?? [],
    expanded: props.expanded ?? [],
    highlight: props.highlight ?? null,
    markers: props.markers ?? [],
    search: props.search ?? "",
    grouping: groupingOf(props.grouping),
  };
}

/** Options besides view and source. */
export function optionsFrom(props: ComponentProps): Omit<TimelineOptions, "source"> {
  return {
    theme: props.theme ?? "system",
    painter: props.painter ?? "auto",
    chrome: props.chrome ?? true,
    scope: rangeFrom(props.scope),
  };
}

/** The profiles that properties compare with. */
export function comparedFrom({ compare }: ComponentProps): readonly Compared[] {
  const all = typeof compare === "string" ? [compare] : (compare ?? []);
  return all.map((one) => (typeof one === "string" ? { profile: one } : one)).filter((one) => one.profile);
}

function rangeFrom(pair: readonly [number, number] | null | undefined): TimeRange | null {
  return pair && pair[1] > pair[0] ? { startNs: pair[0], endNs: pair[1] } : null;
}

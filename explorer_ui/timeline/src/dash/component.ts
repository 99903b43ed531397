/** The Dash component `NeuronTimeline`: a React component that holds the engine, with view state as its properties. */

import { openAhead, takeAhead } from "./ahead.js";
import { Mounted } from "./mounted.js";
import { type ComponentProps, viewFrom } from "./properties.js";

interface ReactLibrary {
  readonly createElement: (kind: string, props: object) => unknown;
  readonly useEffect: (effect: () => (() => void) | undefined, dependencies: readonly unknown[]) => void;
  readonly useRef: <T>(value: T) => { current: T };
}

declare global {
  interface Window {
    React: ReactLibrary;
    neuron_timeline?: Record<string, unknown>;
  }
}

/** The component; Dash gives `setProps` with the properties. */
function NeuronTimeline(props: ComponentProps): unknown {
  const { createElement, useEffect, useRef } = window.React;
  const holder = useRef<HTMLElement | null>(null);
  const shown = useRef<Mounted | null>(null);
  if (shown.current) shown.current.props = props;
  useEffect(() => {
    const host = holder.current;
    if (!host || !props.profile) return undefined;
    const mounted = takeAhead(host, props) ?? new Mounted(host, host, props);
    shown.current = mounted;
    return () => {
      mounted.destroy();
      shown.current = null;
    };
  }, [props.profile, JSON.stringify(props.compare ?? null), props.data_url]);
  const view = JSON.stringify(viewFrom(props));
  useEffect(() => {
    shown.current?.hear(view);
    return undefined;
  }, [view]);
  useEffect(() => {
    shown.current?.handle.setTheme(props.theme ?? "system");
    return undefined;
  }, [props.theme]);
  return createElement("div", {
    id: props.id,
    ref: holder,
    className: props.className,
    style: { height: "100%", ...props.style },
  });
}

(window.neuron_timeline ??= {})["NeuronTimeline"] = NeuronTimeline;
openAhead();

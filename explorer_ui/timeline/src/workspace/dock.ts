/** The docking library behind an interface of our own, so that another one could take its place. */

import { createDockview, type DockviewApi, type DockviewGroupPanel, type IContentRenderer, type ITabRenderer, type TabPartInitParameters, type SerializedDockview } from "dockview-core";
import { button, element } from "../panels/dom.js";
import { type Group, isGroup, namesIn, type Part, type Split } from "./layout.js";

export interface DockPanel {
  readonly name: string;
  readonly title: string;
  readonly content: HTMLElement;
}

export interface DockEvents {
  /** The user arranged the panels otherwise. */
  readonly onLayout: () => void;
  /** A panel came into sight, or went out of it. */
  readonly onShown: (name: string, isShown: boolean) => void;
  /** A panel was enlarged to the whole workspace; null: it was put back. */
  readonly onMaximised: (name: string | null) => void;
}

type Direction = "left" | "right" | "above" | "below";

interface Branch {
  type: "branch";
  data: (Branch | Leaf)[];
  size: number;
}
interface Leaf {
  type: "leaf";
  data: { id: string; views: string[]; activeView: string };
  size: number;
}

const GAP = 6;
const SMALLEST = 140;

/**
 * A panel's title with a cross that closes it. The cross is for the mouse alone: a button within a tab is none that
 * a screen reader finds; by keyboard Delete closes a tab, and the list of panels any panel.
 */
class Tab implements ITabRenderer {
  readonly element = document.createElement("div");

  init({ title, api }: TabPartInitParameters): void {
    const cross = document.createElement("span");
    cross.className = "ws-close";
    cross.title = `Close ${title}`;
    cross.setAttribute("aria-hidden", "true");
    cross.addEventListener("pointerdown", (event) => event.stopPropagation());
    cross.addEventListener("click", () => api.close());
    this.element.className = "ws-tab";
    this.element.dataset["tab"] = api.id;
    this.element.append(title, cross);
  }
}

/** Panels that can be dragged, resized, maximised, closed and opened again. */
export class Dock {
  private readonly api: DockviewApi;
  private readonly observer: ResizeObserver;
  private readonly frames = new Map<string, HTMLElement>();
  private isApplying = false;
  private groups = 0;

  constructor(
    private readonly host: HTMLElement,
    /** Where the contents stand while they are not shown; they never leave the page. */
    private readonly holder: HTMLElement,
    private readonly panels: ReadonlyMap<string, DockPanel>,
    private readonly events: DockEvents,
  ) {
    this.api = createDockview(host, {
      createComponent: ({ name }) => this.renderer(name),
      createTabComponent: () => new Tab(),
      defaultTabComponent: "tab",
      createRightHeaderActionComponent: (group) => {
        const maximise = button("ws-maximise", "", "Enlarge this panel (E)", () => {
          const shown = group.activePanel;
          if (shown) this.toggleMaximised(shown.id);
        });
        return { element: maximise, init: () => undefined, dispose: () => undefined };
      },
      theme: { name: "neuron", className: "ws-theme", gap: GAP, dndTabIndicator: "line" },
      disableFloatingGroups: true,
      disableAutoResizing: true,
      noPanelsOverlay: "emptyGroup",
    });
    this.api.onDidLayoutChange(() => {
      if (this.isApplying) return;
      this.settle();
      events.onLayout();
    });
    this.api.onDidActivePanelChange(() => !this.isApplying && this.settle());
    this.api.onDidMaximizedGroupChange(() => events.onMaximised(this.maximised));
    host.addEventListener("keydown", (event) => this.press(event));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(host);
    this.resize();
  }

  /** Arrange the panels as a layout says. */
  apply(split: Split): void {
    this.isApplying = true;
    try {
      this.api.exitMaximizedGroup();
      this.api.fromJSON(this.serialized(split), { reuseExistingPanels: true });
    } finally {
      this.isApplying = false;
    }
    this.settle();
  }

  /** How the panels are arranged now. */
  layout(): Split {
    const { grid } = this.api.toJSON();
    const root = grid.root as unknown as Branch | Leaf;
    const node = described(root);
    const parts = isGroup(node) ? [{ share: 100, node }] : node.parts;
    return (grid.orientation as string) === "VERTICAL" ? { parts: [{ share: 100, node: { parts } }] } : { parts };
  }

  /** Bring a panel to the front; one that was closed is opened where there is most room. */
  show(name: string): void {
    const there = this.api.getPanel(name);
    if (there) {
      if (this.api.hasMaximizedGroup() && !there.api.isMaximized()) this.api.exitMaximizedGroup();
      there.api.setActive();
      return;
    }
    const largest = [...this.api.groups].sort((one, other) => other.width * other.height - one.width * one.height)[0];
    const position = largest ? { position: { referenceGroup: largest, direction: "within" as const } } : {};
    this.api.addPanel({ id: name, component: name, title: this.panels.get(name)?.title ?? name, ...position });
  }

  close(name: string): void {
    const panel = this.api.getPanel(name);
    if (panel) this.api.removePanel(panel);
  }

  /** Move a panel to a side of the one beside it in that direction, or to that edge. */
  move(name: string, direction: Direction): void {
    const panel = this.api.getPanel(name);
    if (!panel) return;
    const towards = { left: "left", right: "right", above: "up", below: "down" } as const;
    const beside = this.api.adjacentGroupInDirection(panel.group, towards[direction]);
    const group = (beside ?? this.api.addGroup({ direction })) as DockviewGroupPanel;
    panel.api.moveTo({ group, position: "center" });
    this.api.getPanel(name)?.api.setActive();
  }

  toggleMaximised(name: string): void {
    const panel = this.api.getPanel(name);
    if (!panel) return;
    if (panel.api.isMaximized()) panel.api.exitMaximized();
    else panel.api.maximize();
  }

  /** Enlarge a panel, or put back what is enlarged. */
  maximise(name: string | null): void {
    if (name === this.maximised) return;
    if (name === null) this.api.exitMaximizedGroup();
    else this.api.getPanel(name)?.api.maximize();
  }

  get maximised(): string | null {
    if (!this.api.hasMaximizedGroup()) return null;
    return this.api.groups.find((group) => group.api.isMaximized())?.activePanel?.id ?? null;
  }

  /** The panel that was used last. */
  get active(): string | null {
    return this.api.activePanel?.id ?? null;
  }

  /** Panels that are somewhere in the layout, in its order. */
  get open(): string[] {
    return namesIn(this.layout());
  }

  /** Panels that are in sight, in the layout's order. */
  get inSight(): string[] {
    const inFront = new Set(this.api.groups.map((group) => group.activePanel?.id));
    return this.open.filter((name) => inFront.has(name));
  }

  /** Put the focus into a panel: on the first thing in it that takes it, else on the panel itself. */
  focus(name: string): void {
    this.show(name);
    const content = this.panels.get(name)?.content;
    const first = content?.querySelector<HTMLElement>("a[href], button, input, [tabindex='0']");
    (first ?? content)?.focus({ preventScroll: true });
  }

  destroy(): void {
    this.observer.disconnect();
    this.api.dispose();
  }

  /** Delete closes the tab that has the focus; the focus goes on to what stands in its place. */
  private press(event: KeyboardEvent): void {
    if (event.key !== "Delete" || !(event.target instanceof Element) || !event.target.matches(".dv-tab")) return;
    const name = event.target.querySelector<HTMLElement>("[data-tab]")?.dataset["tab"];
    if (!name) return;
    event.preventDefault();
    this.close(name);
    if (this.active) this.focus(this.active);
  }

  private resize(): void {
    const { width, height } = this.host.getBoundingClientRect();
    if (width > 1 && height > 1) this.api.layout(Math.floor(width), Math.floor(height));
  }

  /** Put the content of each panel that is in front of its place there, and all others where they are kept. */
  private settle(): void {
    const inSight = new Set(this.inSight);
    for (const [name, { content }] of this.panels) {
      const frame = inSight.has(name) ? this.frames.get(name) : undefined;
      const place = frame ?? this.holder;
      if (content.parentElement === place) continue;
      place.append(content);
      this.events.onShown(name, frame !== undefined);
    }
  }

  private renderer(name: string): IContentRenderer {
    const frame = element("div", "ws-content");
    this.frames.set(name, frame);
    return {
      element: frame,
      init: () => undefined,
      dispose: () => {
        const content = this.panels.get(name)?.content;
        if (content?.parentElement === frame) {
          this.holder.append(content);
          this.events.onShown(name, false);
        }
        if (this.frames.get(name) === frame) this.frames.delete(name);
      },
    };
  }

  private serialized(split: Split): SerializedDockview {
    const { clientWidth: width, clientHeight: height } = this.host;
    const names = namesIn(split);
    const root = this.branch(split, height, width, height);
    const panels = names.map((name) => [name, { id: name, contentComponent: name, title: this.panels.get(name)?.title ?? name }]);
    return {
      grid: { root, width, height, orientation: "HORIZONTAL" },
      panels: Object.fromEntries(panels) as Record<string, object>,
      activeGroup: firstGroup(root),
    } as unknown as SerializedDockview;
  }

  /** A branch whose parts share `along`; `across` is the length of each the other way. */
  private branch(split: Split, size: number, along: number, across: number): Branch {
    const total = split.parts.reduce((sum, part) => sum + part.share, 0) || 1;
    const data = split.parts.map((part: Part) => {
      const length = Math.max((along * part.share) / total, SMALLEST / 2);
      return isGroup(part.node) ? this.leaf(part.node, length) : this.branch(part.node, length, across, length);
    });
    return { type: "branch", data, size };
  }

  private leaf(group: Group, size: number): Leaf {
    this.groups += 1;
    return { type: "leaf", data: { id: `g${this.groups}`, views: [...group.tabs], activeView: group.active }, size };
  }
}

function firstGroup(node: Branch | Leaf): string {
  return node.type === "leaf" ? node.data.id : firstGroup(node.data[0]!);
}

function described(node: Branch | Leaf): Group | Split {
  if (node.type === "leaf") return { tabs: node.data.views, active: node.data.activeView };
  return { parts: node.data.map((one) => ({ share: one.size, node: described(one) })) };
}


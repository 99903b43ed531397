// What pages do without asking the server: follow links, switch the theme, save tables and charts.
(function () {
  "use strict";

  const THEME_COOKIE = "neuron-explorer-theme";

  function chosenTheme() {
    const found = document.cookie.match(/(?:^|; )neuron-explorer-theme=(light|dark)/);
    if (found) return found[1];
    return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }

  function applyTheme(name) {
    document.documentElement.dataset.theme = name;
    document.documentElement.dataset.agThemeMode = name;
    document.cookie = `${THEME_COOKIE}=${name}; path=/; max-age=31536000; SameSite=Lax`;
  }
  applyTheme(chosenTheme());

  /** What stands before the paths of pages where a proxy shows them; mostly nothing. */
  function root() {
    const config = document.getElementById("_dash-config");
    return config ? JSON.parse(config.textContent).requests_pathname_prefix.replace(/\/$/, "") : "";
  }

  // --- the address -------------------------------------------------------------------------------
  function announceAddress() {
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    window.dispatchEvent(new CustomEvent("_dashprivate_historychange"));
  }

  /** Go to another view of the Explorer without loading the application again. */
  function navigate(href) {
    window.history.pushState({}, "", href);
    announceAddress();
    const page = document.getElementById("page");
    if (page) page.scrollTop = 0;
  }

  /** Note what a page shows now in the address, without drawing the page again; null takes a name out. */
  function setAddress(changes) {
    const url = new URL(window.location.href);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === "") url.searchParams.delete(name);
      else url.searchParams.set(name, String(value));
    }
    window.history.replaceState(window.history.state, "", url);
  }

  /** A link of the navigation with the profile and range that the page shows now. */
  function current(link) {
    const url = new URL(link.href);
    if (!link.classList.contains("nav-link") || url.pathname === `${root()}/`) return url;
    const now = new URL(window.location.href).searchParams;
    for (const name of ["start_ns", "end_ns", "scope"]) {
      if (now.has(name)) url.searchParams.set(name, now.get(name));
      else url.searchParams.delete(name);
    }
    return url;
  }

  function followLink(event) {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest("a[href]");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== window.location.origin) return;
    if (link.pathname.startsWith(`${root()}/download/`) || link.getAttribute("href").startsWith("#")) return;
    event.preventDefault();
    const url = current(link);
    navigate(url.pathname + url.search + url.hash);
  }

  // --- saving ------------------------------------------------------------------------------------
  function save(name, text, type) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  /** A field of a CSV file; what a spreadsheet would run as a formula is kept as text. */
  function csvField(text) {
    const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function saveTable(table, name) {
    const rows = [...table.querySelectorAll("tr")].map((row) =>
      [...row.cells].map((cell) => csvField(cell.dataset.value ?? cell.textContent.trim())).join(","));
    save(`${name}.csv`, rows.join("\r\n") + "\r\n", "text/csv");
  }

  function saveChart(card, format) {
    const graph = card.querySelector(".js-plotly-plot");
    if (!graph || !window.Plotly) return;
    const { width, height } = graph.getBoundingClientRect();
    window.Plotly.downloadImage(graph, {
      format, width: Math.round(width), height: Math.round(height), scale: format === "png" ? 2 : 1,
      filename: card.dataset.name || "chart",
    });
  }

  function say(text) {
    const announcer = document.getElementById("announcer");
    if (announcer) announcer.textContent = text;
  }

  function copyLink(button) {
    navigator.clipboard.writeText(window.location.href).then(
      () => say("The link was copied."), () => say("The browser did not allow copying."));
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy link"; }, 1500);
  }

  // --- tables ------------------------------------------------------------------------------------
  function sortValue(cell) {
    const raw = cell.dataset.value ?? cell.textContent.trim();
    const number = Number(raw);
    return raw !== "" && Number.isFinite(number) ? number : raw.toLowerCase();
  }

  function sortTable(button) {
    const head = button.closest("th");
    const body = button.closest("table").tBodies[0];
    const column = head.cellIndex;
    const falling = head.getAttribute("aria-sort") !== "descending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => [sortValue(row.cells[column]), row]);
    rows.sort(([one], [two]) => {
      const order = typeof one === typeof two ? (one < two ? -1 : one > two ? 1 : 0) : typeof one === "number" ? 1 : -1;
      return falling ? -order : order;
    });
    body.append(...rows.map(([, row]) => row));
  }

  /** Show or hide what stands below a row of a tree. */
  function toggleBranch(button) {
    const open = button.getAttribute("aria-expanded") !== "true";
    setBranch(button.closest("tr"), open);
  }

  function setBranch(row, open) {
    const button = row.querySelector(".tree-toggle");
    if (button) button.setAttribute("aria-expanded", String(open));
    const depth = Number(row.getAttribute("aria-level"));
    let closedBelow = Infinity;
    for (let next = row.nextElementSibling; next; next = next.nextElementSibling) {
      const level = Number(next.getAttribute("aria-level"));
      if (level <= depth) break;
      if (level <= closedBelow) closedBelow = Infinity;
      next.hidden = !open || level > closedBelow;
      const inner = next.querySelector(".tree-toggle");
      if (inner && inner.getAttribute("aria-expanded") === "false" && closedBelow === Infinity) closedBelow = level;
    }
  }

  function moveInTree(event) {
    const row = event.target.closest("tr[aria-level]");
    if (!row) return;
    const button = row.querySelector(".tree-toggle");
    if (event.key === "ArrowRight" && button) setBranch(row, true);
    else if (event.key === "ArrowLeft" && button) setBranch(row, false);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const next = event.key === "ArrowDown" ? "nextElementSibling" : "previousElementSibling";
      let other = row[next];
      while (other && other.hidden) other = other[next];
      const target = other && other.querySelector("button, a");
      if (target) target.focus();
    } else return;
    event.preventDefault();
  }

  const ACTIONS = {
    "theme": () => {
      applyTheme(chosenTheme() === "dark" ? "light" : "dark");
      window.location.reload();
    },
    "copy-link": copyLink,
    "pages": (button) => {
      const isOpen = document.querySelector(".shell").classList.toggle("shows-pages");
      button.setAttribute("aria-expanded", String(isOpen));
      if (isOpen) document.querySelector("#navigation a")?.focus();
    },
    "csv": (button) => saveTable(button.closest(".card").querySelector("table"), button.closest(".card").dataset.name),
    "grid-download": (button) => {
      const now = new URL(window.location.href).searchParams;
      const url = new URL(`${root()}/download/rows/${button.dataset.source}`, window.location.origin);
      for (const name of ["profile", "grid", "start_ns", "end_ns"]) if (now.has(name)) url.searchParams.set(name, now.get(name));
      const link = document.createElement("a");
      link.href = url;
      link.download = "";
      link.click();
    },
    "png": (button) => saveChart(button.closest(".card"), "png"),
    "svg": (button) => saveChart(button.closest(".card"), "svg"),
    "sort": sortTable,
    "toggle": toggleBranch,
    "insert": (button) => {
      const field = document.getElementById(button.dataset.into);
      if (!field) return;
      field.setRangeText(button.dataset.text, field.selectionStart, field.selectionEnd, "end");
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.focus();
    },
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-action]");
    const pages = document.querySelector(".shell.shows-pages");
    if (pages && !(button && button.dataset.action === "pages")) {
      pages.classList.remove("shows-pages");
      pages.querySelector(".pages-button").setAttribute("aria-expanded", "false");
    }
    if (button && ACTIONS[button.dataset.action]) ACTIONS[button.dataset.action](button);
    else followLink(event);
  });
  document.addEventListener("keydown", (event) => {
    if (["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"].includes(event.key)) moveInTree(event);
  });

  // --- the page behind the timeline that it opens with ---------------------------------------------
  const LONGEST_WAIT_MS = 600;

  /** Load the scripts that wait until that timeline is drawn, in their order; the one without a file is the last. */
  function loadPage() {
    const waiting = document.getElementById("page-scripts");
    if (!waiting) return;
    waiting.remove();
    const scripts = [...waiting.content.querySelectorAll("script")].map((given) => {
      const script = document.createElement("script");
      for (const { name, value } of given.attributes) script.setAttribute(name, value);
      script.textContent = given.textContent;
      script.async = false;
      return script;
    });
    const last = scripts.pop();
    for (const name of ["load", "error"]) scripts.at(-1).addEventListener(name, () => document.body.append(last));
    document.body.append(...scripts);
  }
  document.addEventListener("DOMContentLoaded", () => setTimeout(() => window.neuronExplorer.loadPage(), LONGEST_WAIT_MS));

  // --- the workspace -----------------------------------------------------------------------------
  const scripts = new Map();

  /** Load a script once; whoever needs it waits for the same. */
  function load(address) {
    if (!scripts.has(address)) {
      scripts.set(address, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.addEventListener("load", resolve);
        script.addEventListener("error", () => {
          scripts.delete(address);
          reject(new Error(`${address} did not load: load the page again.`));
        });
        script.src = address;
        document.head.append(script);
      }));
    }
    return scripts.get(address);
  }

  window.neuronExplorer = { navigate, setAddress, say, save, root, loadPage };
  window.dash_clientside = Object.assign({}, window.dash_clientside);
  window.dash_clientside.explorer = Object.assign({}, window.dash_clientside.explorer, {
    go_to(wanted) {
      if (wanted) navigate(wanted.href);
      return window.dash_clientside.no_update;
    },
    /** Open the time of a bar that was clicked, where the figure's `meta` says what its axis counts and leads to. */
    open_part(clicked, figure) {
      const { curveNumber, pointNumber } = clicked?.points[0] ?? {};
      if (curveNumber !== undefined) {
        const { base, x } = figure.data[curveNumber];
        const { ns, href } = figure.layout.meta;
        const url = new URL(href, window.location.origin);
        url.searchParams.set("start_ns", Math.floor(base[pointNumber] * ns + 0.5));
        url.searchParams.set("end_ns", Math.ceil((base[pointNumber] + x[pointNumber]) * ns - 0.5));
        navigate(url.pathname + url.search);
      }
      return window.dash_clientside.no_update;
    },
    async open_workspace(data) {
      if (data) {
        await load(data.script);
        window.neuronWorkspace.open(data);
      }
      return window.dash_clientside.no_update;
    },
    set_title(title) {
      if (title) document.title = title;
      return window.dash_clientside.no_update;
    },
  });
})();

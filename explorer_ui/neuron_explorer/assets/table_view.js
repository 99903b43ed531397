// Builds tables from their data as soon as they stand in the page; all texts as text.
(function () {
  "use strict";

  const { element } = window.neuronElements;
  const LONG_TEXT = 120; // characters; C++ names of kernels have up to thousands

  function link(text, href, className, label) {
    const made = element("a", className, text);
    made.setAttribute("href", href.startsWith("/") ? href : "#");
    if (label) made.setAttribute("aria-label", label);
    return made;
  }

  // What one cell of a column has: a list has something for each row, all else is the same in all rows.
  function cellOf(column, row) {
    const found = {};
    for (const name of ["v", "n", "b", "c", "h", "t", "m", "s", "l"]) {
      const value = Array.isArray(column[name]) ? column[name][row] : column[name];
      if (value !== undefined && value !== null) found[name] = value;
    }
    if (found.h !== undefined) found.h = (column.h0 ?? "") + found.h + (column.h1 ?? "");
    return found;
  }

  function cell(text, extras, isFirst) {
    const made = element(isFirst ? "th" : "td", extras.n ? "number" : "");
    if (isFirst) made.scope = "row";
    if (extras.v !== undefined) made.dataset.value = extras.v;
    if (extras.b !== undefined) {
      const bar = element("span", "share-bar");
      bar.style.setProperty("--share", extras.b);
      bar.setAttribute("aria-hidden", "true");
      made.append(bar);
    }
    const isLong = text.length > LONG_TEXT;
    let shown;
    if (extras.s) made.dataset.row = extras.s;
    if (extras.h) shown = link(text, extras.h, extras.c || "", "");
    else if (extras.m) shown = element("code", extras.c || "", text);
    else shown = extras.c || isLong ? element("span", extras.c || "", text) : document.createTextNode(text);
    if (isLong) {
      shown.classList.add("long");
      shown.title = text;
    }
    if (extras.t && shown.setAttribute) shown.setAttribute("title", extras.t);
    made.append(shown);
    if (extras.l) {
      const bar = element("span", "bar");
      for (const [name, href, className, label] of extras.l) bar.append(link(name, href, className, label));
      made.append(bar);
    }
    return made;
  }

  function heading({ heading: text, isNumber }) {
    if (!text) return element("td");
    const made = element("th", isNumber ? "number" : "");
    made.scope = "col";
    const button = element("button", "sort", text);
    button.dataset.action = "sort";
    made.append(button);
    return made;
  }

  function build(place) {
    const { caption, columns } = JSON.parse(place.dataset.table);
    const table = element("table", "data");
    const head = element("tr");
    head.append(...columns.map(heading));
    const top = element("thead");
    top.append(head);
    const body = element("tbody");
    for (let row = 0; row < (columns[0]?.texts.length ?? 0); row += 1) {
      const line = element("tr");
      line.append(...columns.map((column, at) => cell(column.texts[row], cellOf(column, row), at === 0)));
      const named = line.querySelector("[data-row]");
      if (named) {
        line.dataset.select = named.dataset.row;
        if (!named.querySelector("a, button")) named.firstElementChild?.setAttribute("tabindex", "0");
      }
      body.append(line);
    }
    table.append(element("caption", "visually-hidden", caption), top, body);
    place.replaceChildren(table);
  }

  function buildBelow(node) {
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    if (node.dataset.table) build(node);
    for (const place of node.querySelectorAll("[data-table]")) build(place);
  }

  new MutationObserver((changes) => {
    for (const change of changes) {
      if (change.type === "attributes") build(change.target);
      else change.addedNodes.forEach(buildBelow);
    }
  }).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-table"] });
})();

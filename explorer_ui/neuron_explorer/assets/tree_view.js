// Builds the tree table of modules and operations; rows open and close by mouse and by arrow keys.
(function () {
  "use strict";

  const { element, answer } = window.neuronElements;

  function nameCell(depth, name, path, open, isParent, link) {
    const cell = element("th");
    cell.scope = "row";
    cell.dataset.value = path || name;
    const line = element("span", "tree-name");
    line.style.setProperty("--depth", depth);
    if (isParent) {
      const toggle = element("button", "tree-toggle");
      toggle.dataset.action = "toggle";
      toggle.setAttribute("aria-expanded", String(open));
      toggle.setAttribute("aria-label", `${name}: show or hide what is inside`);
      line.append(toggle);
    } else line.append(element("span", "tree-leaf"));
    if (path && depth) {
      const anchor = element("a", "", name);
      const url = new URL(link, window.location.href);
      url.searchParams.set("search", `layer=${path}`);
      anchor.href = url.pathname + url.search;
      anchor.title = `${path}: find its spans on the timeline`;
      line.append(anchor);
    } else line.append(element("span", path ? "" : "faint", name));
    cell.append(line);
    return cell;
  }

  function showTree(data) {
    const place = document.getElementById("tree-table");
    if (!place || !data) return window.dash_clientside.no_update;
    const table = element("table", "data");
    table.setAttribute("role", "treegrid");
    table.setAttribute("aria-label", "Modules and operations");
    const head = element("tr");
    data.headings.forEach((text, index) => {
      const heading = element("th", index ? "number" : "", text);
      heading.scope = "col";
      head.append(heading);
    });
    const body = element("tbody");
    let hiddenBelow = Infinity;
    data.rows.forEach(([depth, name, path, open, cells], index) => {
      const row = element("tr");
      const following = data.rows[index + 1];
      const isParent = Boolean(following && following[0] > depth);
      row.setAttribute("aria-level", depth + 1);
      if (path && depth) row.dataset.select = `module:${path}`;
      else if (!path) row.dataset.select = `operation:${name}`;
      if (depth <= hiddenBelow) hiddenBelow = Infinity;
      row.hidden = depth > hiddenBelow;
      if (isParent && !open && hiddenBelow === Infinity) hiddenBelow = depth;
      row.append(nameCell(depth, name, path, open, isParent, data.link));
      for (const [text, value] of cells) {
        const cell = element("td", "number", text);
        cell.dataset.value = value;
        row.append(cell);
      }
      const bar = element("span", "share-bar");
      bar.style.setProperty("--share", cells[1][1]);
      row.cells[2].prepend(bar);
      body.append(row);
    });
    const top = element("thead");
    top.append(head);
    table.append(top, body);
    place.replaceChildren(table);
    return window.dash_clientside.no_update;
  }

  answer({ show_tree: showTree });
})();

// The schema browser of the page Query, and what its editor does by key.
(function () {
  "use strict";

  const { element, answer } = window.neuronElements;

  function nameButton(text, title) {
    const button = element("button", "", text);
    Object.assign(button.dataset, { action: "insert", into: "query-text", text });
    button.title = title;
    return button;
  }

  function showSchema(tables) {
    const place = document.getElementById("schema-tree");
    if (!place || !tables) return window.dash_clientside.no_update;
    const parts = Object.entries(tables).map(([name, [rows, columns]]) => {
      const part = element("details");
      const summary = element("summary");
      summary.append(element("span", "mono", name), element("span", "faint", ` ${Number(rows).toLocaleString("en-US")}`));
      const list = element("ul");
      const all = element("li");
      all.append(nameButton(name, "Insert the table's name"));
      list.append(all);
      for (const [column, type] of columns) {
        const item = element("li");
        item.append(nameButton(column, "Insert the column's name"), element("span", "faint", ` ${type}`));
        list.append(item);
      }
      part.append(summary, list);
      return part;
    });
    place.replaceChildren(...parts);
    return window.dash_clientside.no_update;
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.target.id !== "query-text") return;
    event.preventDefault();
    document.getElementById("query-run").click();
  });

  answer({
    show_schema: showSchema,
    keep_query(clicks, sql) {
      if (clicks) window.neuronExplorer.setAddress({ sql });
      return window.dash_clientside.no_update;
    },
  });
})();

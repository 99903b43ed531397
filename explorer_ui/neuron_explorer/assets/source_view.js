// Builds the table of a source file: thousands of lines in one go, all texts as text.
(function () {
  "use strict";

  const { element, answer } = window.neuronElements;

  function split(parts) {
    const bar = element("span", "split");
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", parts.map(([, percent, name]) => `${name} ${percent} %`).join(", "));
    bar.title = bar.getAttribute("aria-label");
    for (const [colour, percent] of parts) {
      const part = element("span");
      part.style.width = `${percent}%`;
      part.style.background = colour;
      bar.append(part);
    }
    return bar;
  }

  function cell(className, text, value) {
    const made = element("td", className, text);
    if (value !== undefined) made.dataset.value = value;
    return made;
  }

  function lineRow([number, text, time, shownTime, instructions, shownBytes, bytes, parts, isHost], { costliest, file }) {
    const row = element("tr");
    row.id = `line-${number}`;
    row.dataset[parts ? "select" : "shows"] = `line:${file}:${number}`; // marked when chosen elsewhere, too
    const place = element("td", "number");
    if (parts) {
      const button = element("button", "line-button", String(number));
      button.dataset.line = number;
      button.title = "What this line became";
      place.append(button);
    } else place.textContent = number;
    row.append(place, cell(isHost ? "number host" : "number", shownTime || "", time || ""),
      cell("number", instructions ? Number(instructions).toLocaleString("en-US") : "", instructions || ""),
      cell("number", shownBytes || "", bytes || ""));
    const engines = element("td");
    if (parts && parts.length) engines.append(split(parts));
    engines.dataset.value = parts ? parts.map(([, percent, name]) => `${name} ${percent}%`).join(" ") : "";
    row.append(engines, cell("text", text));
    if (time && !isHost) {
      row.className = "costly";
      row.style.setProperty("--heat-share", Math.sqrt(time / costliest).toFixed(3));
    }
    return row;
  }

  function choose(line, { scroll }) {
    for (const old of document.querySelectorAll("table.code tr.chosen")) old.classList.remove("chosen");
    const row = document.getElementById(`line-${line}`);
    if (!row) return;
    row.classList.add("chosen");
    if (scroll) {
      const frame = row.closest(".panel") ?? row.closest(".table-wrap"); // a panel scrolls as a whole
      const top = row.getBoundingClientRect().top - frame.getBoundingClientRect().top;
      frame.scrollTop += top - frame.clientHeight / 3;
    }
  }

  function showSource(data, line) {
    const place = document.getElementById("source-code");
    if (!place || !data) return window.dash_clientside.no_update;
    const table = element("table", "code");
    const head = element("tr");
    for (const [name, className] of [["Line"], ["Time"], ["Instructions"], ["DMA"], ["Engines"], ["Source", "text"]]) {
      const heading = element("th", className, name);
      heading.scope = "col";
      head.append(heading);
    }
    const body = element("tbody");
    body.append(...data.lines.map((entry) => lineRow(entry, data)));
    const top = element("thead");
    top.append(head);
    table.append(top, body);
    place.replaceChildren(table);
    choose(data.opened, { scroll: true });
    if (!line) for (const old of table.querySelectorAll("tr.chosen")) old.classList.remove("chosen");
    return window.dash_clientside.no_update;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.line-button");
    if (!button) return;
    const line = Number(button.dataset.line);
    choose(line, { scroll: false });
    window.neuronExplorer.setAddress({ line });
    window.dash_clientside.set_props("source-line", { data: line });
  });

  answer({ show_source: showSource });
})();

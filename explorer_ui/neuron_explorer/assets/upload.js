// Takes traces that are dropped onto the page Profiles, or chosen there, and sends them to this server.
(function () {
  "use strict";

  function tell(text) {
    const place = document.getElementById("upload-state");
    if (place) place.textContent = ` ${text}`;
  }

  function send(file) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("POST", `${window.neuronExplorer.root()}/upload?name=${encodeURIComponent(file.name)}`);
      request.upload.onprogress = (event) => {
        if (event.lengthComputable) tell(`${file.name}: ${Math.round((100 * event.loaded) / event.total)} %`);
      };
      request.onload = () => (request.status === 200 ? resolve() : reject(new Error(request.statusText)));
      request.onerror = () => reject(new Error("the connection broke"));
      request.send(file);
    });
  }

  async function sendAll(files) {
    for (const file of files) {
      try {
        await send(file);
        tell(`${file.name} was sent and is being imported.`);
      } catch (error) {
        tell(`${file.name} was not sent: ${error.message}.`);
        return;
      }
    }
    window.dash_clientside.set_props("import-answer", { children: "" });
  }

  document.addEventListener("dragover", (event) => {
    const drop = event.target.closest && event.target.closest("#drop");
    if (!drop) return;
    event.preventDefault();
    drop.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => {
    const drop = event.target.closest && event.target.closest("#drop");
    if (drop) drop.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    const drop = event.target.closest && event.target.closest("#drop");
    if (!drop) return;
    event.preventDefault();
    drop.classList.remove("over");
    sendAll([...event.dataTransfer.files]);
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("button[data-action='upload']")) return;
    const field = document.createElement("input");
    field.type = "file";
    field.multiple = true;
    field.addEventListener("change", () => sendAll([...field.files]));
    field.click();
  });
})();

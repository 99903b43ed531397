// The theme: what the user chose the last time, else what the system prefers.
window.dash_clientside = Object.assign({}, window.dash_clientside, {
  neuron_monitor: {
    theme: function (clicks, current) {
      const key = "neuron-monitor-theme";
      const preferred = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      let theme = window.localStorage.getItem(key) || preferred;
      if (clicks) {
        theme = current === "dark" ? "light" : "dark";
        window.localStorage.setItem(key, theme);
      }
      document.documentElement.dataset.theme = theme;
      return theme;
    },
  },
});

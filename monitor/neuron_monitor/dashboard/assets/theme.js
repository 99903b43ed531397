// The theme: what the system prefers, or what the user chose since the system's preference changed last.
(function () {
  const key = "neuron-monitor-theme";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const preferred = () => (dark.matches ? "dark" : "light");
  const show = (theme) => {
    document.documentElement.dataset.theme = theme;
    return theme;
  };
  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    neuron_monitor: {
      theme: function (clicks, current) {
        let theme = window.localStorage.getItem(key) || preferred();
        if (clicks) {
          theme = current === "dark" ? "light" : "dark";
          window.localStorage.setItem(key, theme);
        }
        return show(theme);
      },
    },
  });
  dark.addEventListener("change", () => {
    window.localStorage.removeItem(key);
    window.dash_clientside.set_props("theme", { data: show(preferred()) });
  });
})();

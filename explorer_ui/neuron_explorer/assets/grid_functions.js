// How grids write numbers: as the rest of the Explorer does, three digits and a unit.
(function () {
  "use strict";

  const { answer } = window.neuronElements;

  function threeDigits(value) {
    const size = Math.abs(value);
    if (size >= 99.95) return value.toFixed(0);
    return size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
  }

  function scaled(value, steps, unit) {
    for (const [factor, prefix] of steps) {
      if (Math.abs(value) >= factor * 0.9995) return `${threeDigits(value / factor)} ${prefix}`;
    }
    return `${value.toFixed(0)} ${unit}`;
  }

  const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  const BYTES = [[1e15, "PB"], [1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const NUMBERS = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const none = (value) => value === null || value === undefined || value === "";

  window.dashAgGridFunctions = Object.assign(window.dashAgGridFunctions || {}, {
    /** Tab leaves the cells for what stands behind the grid, as it does any other table; arrow keys walk them. */
    neuronLeaveGrid: () => false,
    neuronTime: (value) => (none(value) ? "" : scaled(Number(value), TIMES, "ns")),
    neuronBytes: (value) => (none(value) ? "" : scaled(Number(value), BYTES, "B")),
    neuronCount: (value) => (none(value) ? "" : Number(value).toLocaleString("en-US")),
    neuronShare: (value) => (none(value) ? "" : `${(100 * value).toFixed(value < 0.00095 ? 2 : 1)} %`),
    neuronNumber: (value) => {
      if (none(value)) return "";
      const number = Number(value);
      return Math.abs(number) >= 999.5 ? scaled(number, NUMBERS, "").trim() : String(Number(number.toPrecision(4)));
    },
  });

  function state(request) {
    const { sortModel = [], filterModel = {} } = request || {};
    return sortModel.length || Object.keys(filterModel).length ? JSON.stringify({ sortModel, filterModel }) : null;
  }

  answer({
    keep_grid_state(request) {
      if (request) window.neuronExplorer.setAddress({ grid: state(request) });
      return window.dash_clientside.no_update;
    },
  });
})();

// Draws the figures of a page from the numbers that stand in it. Plotly is loaded after the text is on the screen.
"use strict";
(() => {
  const assets = document.currentScript.src.replace(/[^/]*$/, "");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const printing = matchMedia("print");
  const PAPER_PX = 690; // what A4 and letter leave between their margins
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const HIDDEN_FROM_HOVER = "skip";

  const text = (value) => String(value).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const column = (rows, at) => rows.map((row) => row[at]);
  const shown = (value) => (typeof value === "number" ? String(Number(value.toPrecision(5))) : text(value));

  function palette() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    return {
      paper: of("--paper"), ink: of("--ink"), grey: of("--grey"), line: of("--line"), mark: of("--mark"),
      series: [0, 1, 2, 3, 4, 5].map((at) => of(`--c${at}`)),
    };
  }

  function fade(colour, share) {
    const parts = /^#(..)(..)(..)$/.exec(colour.length === 4 ? colour.replace(/[^#]/g, "$&$&") : colour);
    if (!parts) return colour;
    return `rgba(${parts.slice(1).map((part) => parseInt(part, 16)).join(",")},${share})`;
  }

  function band(x, low, high, colour, more) {
    return {
      x: x.concat([...x].reverse()), y: high.concat([...low].reverse()), type: "scatter", mode: "lines", fill: "toself",
      fillcolor: fade(colour, 0.18), line: { width: 0 }, hoverinfo: HIDDEN_FROM_HOVER, showlegend: false, ...more,
    };
  }

  function medians(points, colour, name, symbol, data, more) {
    const [x, y, low, high, n] = [0, 1, 2, 3, 4].map((at) => column(points, at));
    return {
      x, y, name, type: "scatter", mode: "markers",
      marker: { color: colour, size: 9, symbol, line: { width: 1, color: palette().paper } },
      error_y: {
        type: "data", symmetric: false, array: high.map((end, at) => end - y[at]), arrayminus: low.map((end, at) => y[at] - end),
        color: colour, thickness: 1.5, width: 4,
      },
      text: points.map((p, at) => `${text(data.x)} ${shown(x[at])}<br>${text(name)}: median ${shown(y[at])} [${shown(low[at])}, ${shown(high[at])}]<br>${n[at]} accepted`),
      hoverinfo: "text", ...more,
    };
  }

  function segments(list, colours, name, group) {
    return list.flatMap((segment, at) => {
      const colour = colours[at % colours.length];
      const formula = segment.formula.replace(/^[a-z_0-9]+ = /, "");
      const label = name || (formula.length > 60 ? `${formula.slice(0, 59)}…` : formula);
      const line = {
        x: segment.x, y: segment.y, type: "scatter", mode: segment.x.length > 1 ? "lines" : "markers", name: text(label),
        line: { color: colour, width: 2.5, dash: group === undefined ? DASHES[at % DASHES.length] : DASHES[group % DASHES.length] },
        marker: { color: colour, symbol: "line-ew-open", size: 14 }, hoverinfo: HIDDEN_FROM_HOVER,
        showlegend: group === undefined, legendgroup: group === undefined ? `segment${at}` : `run${group}`,
      };
      const around = segment.low && segment.x.length > 1 ? [band(segment.x, segment.low, segment.high, colour, { legendgroup: line.legendgroup })] : [];
      return [...around, line];
    });
  }

  function upright(x, colour, dash, words, side) {
    const shape = { type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0.36, y1: 1, line: { color: colour, width: 1.2, dash } };
    const label = { at: x, xref: "x", yref: "paper", y: side === "top" ? 1 : 0.37, text: text(words), showarrow: false, textangle: -90,
      xanchor: "right", yanchor: side === "top" ? "top" : "bottom", font: { size: 11, color: colour }, bgcolor: fade(palette().paper, 0.6), borderpad: 1,
      xshift: -7 };  // beside the point at which a segment begins, not on it
    return [shape, label];
  }

  // --- the kinds of figures: each gives traces, shapes and labels, and what the lower axes show

  function runFigure(data, state, c) {
    const trials = data.trials;
    const kept = trials.filter((t) => t[3]);
    const rejected = trials.filter((t) => !t[3]);
    const repetition = (list, name, symbol, opacity) => ({
      x: column(list, 0), y: column(list, 1), name, type: "scatter", mode: "markers", opacity,
      marker: { color: c.grey, size: 6, symbol }, visible: state.repetitions ? true : "legendonly",
      text: list.map((t) => `${text(data.x)} ${shown(t[0])}<br>repetition ${t[2]}: ${shown(t[1])}${t[3] ? "" : "<br>rejected"}${t[4] ? `<br>${text(t[4])}` : ""}`),
      hoverinfo: "text",
    });
    const traces = [...segments(data.segments, c.series.slice(1)), medians(data.points, c.series[0], "median, 95 % interval", "circle", data)];
    if (kept.length) traces.push(repetition(kept, "repetitions", "circle-open", 0.9));
    if (rejected.length) traces.push(repetition(rejected, "rejected repetitions", "x-thin-open", 0.9));
    if (data.residuals.length) {
      const [x, y, low, high] = [0, 1, 2, 3].map((at) => column(data.residuals, at));
      traces.push({
        x, y, yaxis: "y2", type: "scatter", mode: "markers", name: "residuals", showlegend: false,
        marker: { color: c.series[0], size: 7 },
        error_y: { type: "data", symmetric: false, array: high.map((v, at) => v - y[at]), arrayminus: low.map((v, at) => y[at] - v), color: c.series[0], thickness: 1.2, width: 3 },
        text: data.residuals.map((r) => `${text(data.x)} ${shown(r[0])}<br>residual ${shown(r[1])} %`), hoverinfo: "text",
      });
    }
    const lines = [
      ...data.breakpoints.map((s) => upright(s.x, c.ink, "dash", `breakpoint at ${shown(s.x)}`, data.marks.length ? "bottom" : "top")),
      ...data.marks.map((m) => upright(m.x, c.mark, "dot", m.text, "top")),
    ];
    const spans = data.breakpoints.filter((s) => s.low !== null && s.high !== null && s.low < s.high).map((s) => ({
      type: "rect", xref: "x", yref: "paper", x0: s.low, x1: s.high, y0: 0.36, y1: 1, line: { width: 0 }, fillcolor: fade(c.grey, 0.14), layer: "below",
    }));
    return { traces, lines, spans, lower: data.residuals.length ? "residual [%]" : "" };
  }

  function comparisonFigure(data, state, c) {
    const colour = (at) => c.series[at % c.series.length];
    const traces = data.series.flatMap((run, at) => [
      ...segments(run.segments, [colour(at)], run.label, at),
      medians(run.points, colour(at), run.label, SYMBOLS[at % SYMBOLS.length], data, { legendgroup: `run${at}` }),
    ]);
    for (const pair of data.ratios) {
      const at = data.series.findIndex((run) => run.label === pair.run);
      const [x, y, low, high] = [0, 1, 2, 3].map((index) => column(pair.points, index));
      traces.push({
        x, y, yaxis: "y2", type: "scatter", mode: "lines+markers", name: pair.run, showlegend: false, legendgroup: `run${at}`,
        marker: { color: colour(at), size: 7, symbol: SYMBOLS[at % SYMBOLS.length] }, line: { color: colour(at), width: 1.2, dash: DASHES[at % DASHES.length] },
        error_y: { type: "data", symmetric: false, array: high.map((v, i) => (v === null ? 0 : v - y[i])), arrayminus: low.map((v, i) => (v === null ? 0 : y[i] - v)), color: colour(at), thickness: 1.2, width: 3 },
        text: pair.points.map((p) => `${text(data.x)} ${shown(p[0])}<br>${text(pair.run)} is ${shown(p[1])} times ${text(pair.reference)}`), hoverinfo: "text",
      });
    }
    const one = { type: "line", xref: "paper", yref: "y2", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: c.grey, width: 1, dash: "dot" } };
    return { traces, lines: [], spans: data.ratios.length ? [one] : [], lower: data.ratios.length ? "ratio" : "" };
  }

  function breakdownFigure(data, state, c) {
    const rows = [...data.bars].reverse();
    const y = column(rows, 0), x = column(rows, 1), low = column(rows, 2), high = column(rows, 3);
    const open = high.map((v) => v === null);
    return { bars: true, lines: [], spans: [], lower: "", traces: [{
      type: "bar", orientation: "h", x, y: y.map(text), marker: { color: fade(c.series[0], 0.75), line: { color: c.series[0], width: 1 } }, showlegend: false,
      error_x: { type: "data", symmetric: false, array: high.map((v, at) => (open[at] ? 0 : v - x[at])), arrayminus: low.map((v, at) => (v === null ? 0 : x[at] - v)), color: c.ink, thickness: 1.2, width: 3 },
      text: rows.map((row) => `${text(row[0])}<br>${shown(row[1])} ${text(data.x)}${row[4] ? `<br>${text(row[4])}` : ""}`), hoverinfo: "text", textposition: "none",
    }] };
  }

  const KINDS = { run: runFigure, comparison: comparisonFigure, breakdown: breakdownFigure };

  function layout(data, state, made, c, log) {
    const axis = { gridcolor: c.line, zerolinecolor: c.line, linecolor: c.grey, tickcolor: c.grey, automargin: true, exponentformat: "SI", title: { standoff: 8 } };
    const lower = made.lower && state.lower;
    const at = (x) => (log ? Math.log10(x) : x);
    const drawn = made.lines.filter(([shape]) => !log || shape.x0 > 0);
    const found = {
      paper_bgcolor: c.paper, plot_bgcolor: c.paper, font: { color: c.ink, family: "system-ui, sans-serif", size: 13 }, hovermode: "closest",
      hoverlabel: { bgcolor: c.paper, bordercolor: c.ink, font: { color: c.ink }, align: "left" }, dragmode: "zoom",
      margin: { l: 64, r: 16, t: 12, b: 48 },
      legend: { orientation: "h", x: 0, y: -0.17, yanchor: "top", bgcolor: "rgba(0,0,0,0)" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: c.grey, activecolor: c.ink },
      xaxis: { ...axis, type: data.scale === "category" ? "category" : log ? "log" : "linear", title: { text: text(data.x), standoff: 8, font: { size: 13 } }, anchor: lower ? "y2" : "y" },
      yaxis: { ...axis, type: state.logy ? "log" : "linear", title: { text: text(data.y), standoff: 8, font: { size: 13 } }, domain: lower ? [0.36, 1] : [0, 1] },
      shapes: [...made.spans.filter((s) => lower || s.yref !== "y2"), ...drawn.map(([shape]) => shape)].map((s) => (s.yref === "paper" && !lower ? { ...s, y0: 0 } : s)),
      annotations: drawn.map(([, label]) => ({ ...label, x: at(label.at), at: undefined, y: label.y === 0.37 && !lower ? 0.01 : label.y })),
    };
    if (lower) found.yaxis2 = { ...axis, domain: [0, 0.26], title: { text: made.lower, standoff: 8, font: { size: 13 } }, zerolinecolor: c.grey, type: "linear" };
    if (data.scale === "category") {
      found.legend = { ...found.legend, y: 1.01, yanchor: "bottom" };
      found.xaxis.tickfont = { size: 11 };
    }
    if (printing.matches) found.width = PAPER_PX;
    if (made.bars) {
      found.margin.l = 24;
      found.xaxis.anchor = "y";
      found.yaxis = { ...axis, type: "category", automargin: true, tickfont: { size: 11 } };
      found.xaxis.rangemode = "tozero";
    }
    return found;
  }

  function draw(figure) {
    const { data, state, place, note } = figure;
    const c = palette();
    const log = state.logx && data.scale !== "category";
    const made = KINDS[data.kind](data, state, c);
    const traces = state.lower ? made.traces : made.traces.filter((trace) => trace.yaxis !== "y2");
    const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
    const zero = log && traces.some((trace) => trace.yaxis !== "y2" && (trace.x || []).some((x) => typeof x === "number" && x <= 0));
    note.textContent = zero ? "Points at 0 have no place on a logarithmic axis; they are in the table." : "";
    place.dataset.ground = c.paper;
    window.Plotly.react(place, traces, layout(data, state, made, c, log), config);
  }

  function prepare(element) {
    const data = JSON.parse(element.querySelector("script.data").textContent);
    const place = element.querySelector(".plot");
    const state = { logx: data.scale === "log", logy: false, repetitions: true, lower: true };
    const figure = { data, state, place, note: element.querySelector(".switches .note"), drawn: false };
    if (data.kind === "breakdown") place.style.height = `${Math.max(12, 4 + 1.5 * data.bars.length)}rem`;
    for (const button of element.querySelectorAll("button[data-switch]")) {
      const name = button.dataset.switch;
      button.setAttribute("aria-pressed", String(state[name]));
      button.addEventListener("click", () => {
        state[name] = !state[name];
        button.setAttribute("aria-pressed", String(state[name]));
        if (figure.drawn) draw(figure);
      });
    }
    element.querySelector(".switches").hidden = false;
    return figure;
  }

  function start() {
    const figures = [...document.querySelectorAll("figure.interactive")].map(prepare);
    if (!figures.length) return;
    const script = document.createElement("script");
    script.src = `${assets}plotly.min.js`;
    script.addEventListener("load", () => {
      for (const figure of figures) {
        draw(figure);
        figure.drawn = true;
      }
      document.documentElement.dataset.figures = "drawn";
      const again = () => figures.forEach(draw);
      dark.addEventListener("change", again);
      printing.addEventListener("change", again);
    });
    script.addEventListener("error", () => figures.forEach((f) => { f.note.textContent = "assets/plotly.min.js is missing: only the tables can be shown."; }));
    document.head.append(script);
  }

  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(start, 0)));
})();

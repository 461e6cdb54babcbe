"use strict";
// Draws the charts of a run when its page is opened, fills tables on demand, filters and sorts the overview.
// All text from a run reaches the page as text, never as markup.
(() => {
  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
  const COLORS = 7;
  const HEIGHT = 210;
  const plots = new Set();

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const shown = (value) => (value === null || value === undefined ? "no value" : value === "nan" ? "NaN" : String(value));
  const make = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  // The range of the finite values, with the limits and baselines that lie near them.
  function rangeOf(columns, chart) {
    let low = Infinity, high = -Infinity;
    for (const column of columns) {
      for (const value of column) {
        if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
      }
    }
    const levels = [...chart.marks.map((mark) => mark.value), ...chart.bands.flatMap((band) => [band.low, band.high])];
    if (low > high) [low, high] = levels.length ? [Math.min(...levels), Math.max(...levels)] : [0, 1];
    const span = high - low || Math.abs(high) * 0.1 || 1;
    const near = levels.filter((level) => level >= low - span && level <= high + span);
    low = Math.min(low, ...near);
    high = Math.max(high, ...near);
    const room = (high - low || span) * 0.08;
    return [low - room, high + room];
  }

  function paintBands(plot, chart) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = css("--band");
    for (const band of chart.bands) {
      const top = Math.max(plot.valToPos(band.high, "y", true), bbox.top);
      const bottom = Math.min(plot.valToPos(band.low, "y", true), bbox.top + bbox.height);
      if (bottom > top) ctx.fillRect(bbox.left, top, bbox.width, bottom - top);
    }
    ctx.restore();
  }

  function paintMarks(plot, chart) {
    const { ctx, bbox } = plot;
    const pixel = uPlot.pxRatio;
    ctx.save();
    ctx.font = `${11 * pixel}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.lineWidth = pixel;
    ctx.setLineDash([5 * pixel, 3 * pixel]);
    let outside = 0;
    for (const mark of chart.marks) {
      ctx.strokeStyle = ctx.fillStyle = css(mark.failed ? "--bad" : "--quiet");
      const y = plot.valToPos(mark.value, "y", true);
      const place = y < bbox.top ? "above" : y > bbox.top + bbox.height ? "below" : "";
      if (place) {
        ctx.fillText(`${place === "above" ? "\u2191" : "\u2193"} ${mark.label}`, bbox.left + 4 * pixel, bbox.top + 12 * pixel * ++outside);
        continue;
      }
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.fillText(mark.label, bbox.left + 4 * pixel, y - 3 * pixel);
    }
    ctx.restore();
  }

  // What is no finite number stands at the edge, at its step.
  function paintOddities(plot, raw) {
    const { ctx, bbox } = plot;
    const pixel = uPlot.pxRatio;
    ctx.save();
    ctx.font = `bold ${12 * pixel}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    ctx.textBaseline = "alphabetic";
    ctx.fillStyle = css("--bad");
    let labelledTo = -Infinity;
    raw.forEach((column) => column.forEach((value, index) => {
      if (typeof value !== "string") return;
      const x = plot.valToPos(plot.data[0][index], "x", true);
      const top = value === "inf";
      const y = top ? bbox.top + 12 * pixel : bbox.top + bbox.height - 4 * pixel;
      ctx.fillText(value === "nan" ? "\u00d7" : top ? "\u25b2" : "\u25bc", x, y);
      if (x - labelledTo > 40 * pixel) {
        ctx.fillText(shown(value), x, top ? y + 13 * pixel : y - 13 * pixel);
        labelledTo = x;
      }
    }));
    ctx.restore();
  }

  function draw(figure, data, chart) {
    const holder = figure.querySelector(".plot");
    const { x, series } = data.tables[chart.axis];
    const raw = chart.keys.map((key) => series[key]);
    const columns = raw.map((column) => column.map((value) => (typeof value === "number" ? value : null)));
    const color = (index) => css(`--c${index % COLORS}`);

    const values = chart.keys.map((key, index) => {
      const item = make("li");
      const swatch = make("span", "", { class: "swatch", "aria-hidden": "true" });
      swatch.style.borderTopColor = `var(--c${index % COLORS})`;
      swatch.style.borderTopStyle = DASHES[index % DASHES.length].length ? "dashed" : "solid";
      const value = make("span");
      item.append(swatch, `${key} `, value);
      return { item, value };
    });
    const key = make("ul", "", { class: "key" });
    key.append(...values.map(({ item }) => item));
    const said = make("span", "", { class: "unseen", role: "status" });
    holder.replaceChildren();

    const grid = { stroke: () => css("--grid"), width: 1 };
    const axis = { stroke: () => css("--quiet"), grid, ticks: grid, font: "11px system-ui, sans-serif" };
    const number = (value) => (Math.abs(value) >= 1e5 || (value && Math.abs(value) < 1e-3) ? value.toExponential() : String(value));
    const plot = new uPlot({
      width: holder.clientWidth, height: HEIGHT,
      legend: { show: false },
      scales: { x: { time: false }, y: { range: () => rangeOf(columns, chart) } },
      axes: [
        { ...axis, size: 32, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000, 1000000] },
        { ...axis, size: 64, values: (_, splits) => splits.map((value) => number(+value.toPrecision(5))) },
      ],
      series: [{}, ...chart.keys.map((name, index) => ({
        stroke: () => color(index), width: index ? 1.25 : 2, dash: DASHES[index % DASHES.length],
        spanGaps: chart.sparse.includes(name), points: { show: x.length <= 60 || chart.sparse.includes(name), size: 5 },
      }))],
      hooks: {
        drawClear: [(self) => paintBands(self, chart)],
        draw: [(self) => { paintMarks(self, chart); paintOddities(self, raw); }],
        setCursor: [(self) => {
          const index = self.cursor.idx;
          values.forEach(({ value }, line) => {
            value.textContent = index === null || index === undefined ? "" : `at ${chart.axis} ${x[index]}: ${shown(raw[line][index])}`;
          });
        }],
      },
    }, [x, ...columns], holder);
    plot.holder = holder;
    plots.add(plot);

    let at = -1;
    holder.onkeydown = (event) => {
      const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: x.length - 1 }[event.key];
      if (next === undefined || !x.length) return;
      event.preventDefault();
      at = Math.max(0, Math.min(x.length - 1, next));
      plot.setCursor({ left: plot.valToPos(x[at], "x"), top: plot.over.clientHeight / 2 });
      said.textContent = `${chart.axis} ${x[at]}: ${chart.keys.map((name, line) => `${name} ${shown(raw[line][at])}`).join(", ")}`;
    };
    figure.querySelector(".legend").replaceChildren(key, said);
    const details = figure.querySelector("details.values");
    details.querySelector(".scroll")?.remove();
    details.ontoggle = () => {
      if (!details.open || details.querySelector("table")) return;
      details.append(tableOf(chart.title, [chart.axis, ...chart.keys], x.map((step, index) => [step, ...raw.map((column) => column[index])])));
    };
    if (details.open) details.ontoggle();
  }

  function tableOf(caption, header, rows) {
    const holder = make("div", "", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption });
    const table = holder.appendChild(make("table"));
    table.append(make("caption", caption));
    const head = table.createTHead().insertRow();
    header.forEach((name) => head.append(make("th", name, { scope: "col" })));
    const body = table.createTBody();
    for (const cells of rows) {
      const row = body.insertRow();
      cells.forEach((cell, index) => row.append(index ? make("td", shown(cell)) : make("th", shown(cell), { scope: "row" })));
    }
    return holder;
  }

  function fill(section, data) {
    section.querySelectorAll("figure[data-chart]").forEach((figure) => draw(figure, data, data.charts[figure.dataset.chart]));
    const any = section.querySelector("figure.any");
    if (any) {
      const select = any.querySelector("select");
      select.append(...Object.keys(data.tables.step.series).sort().map((name) => make("option", name, { value: name })));
      const update = () => {
        plots.forEach((plot) => { if (any.contains(plot.holder)) { plot.destroy(); plots.delete(plot); } });
        draw(any, data, { title: select.value, axis: "step", keys: [select.value], sparse: data.sparse, marks: [], bands: [] });
      };
      select.onchange = update;
      if (select.value) update();
    }
    const details = section.querySelector("details.metrics");
    if (details) details.ontoggle = () => {
      if (details.open && !details.querySelector("table")) details.append(tableOf("All metrics of the run", data.figures[0], data.figures.slice(1)));
    };
  }

  async function open() {
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { /* no anchor of ours */ }
    const target = id ? document.getElementById(id) : null;
    const section = target && target.closest("section.run");
    const title = document.querySelector("h1").textContent;
    document.title = section ? `${section.dataset.title} \u2013 ${title}` : title;
    if (!section) return;
    if (target === section) section.querySelector("h2").focus();
    if (section.dataset.filled) return;
    section.dataset.filled = "yes";
    const block = document.getElementById(`data-${section.id}`);
    if (block) fill(section, await unpack(block.textContent));
    section.dataset.drawn = "yes";
  }

  function overview() {
    const table = document.querySelector("#overview table.runs");
    const filters = document.querySelector(".filters");
    if (!table || !filters) return;
    const rows = [...table.tBodies[0].rows];
    const [text, verdict, runner] = ["text", "verdict", "runner"].map((name) => filters.querySelector(`[name="${name}"]`));
    const count = filters.querySelector("output");
    const apply = () => {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const fits = (!verdict.value || row.dataset.verdict === verdict.value) && (!runner.value || row.dataset.runner === runner.value)
          && words.every((word) => row.textContent.toLowerCase().includes(word));
        row.hidden = !fits;
        left += fits;
      }
      count.textContent = `${left} of ${rows.length} runs shown`;
    };
    [text, verdict, runner].forEach((control) => control.addEventListener("input", apply));
    filters.hidden = false;
    apply();

    const value = (row, index) => { const cell = row.cells[index]; return cell.dataset.sort ?? cell.textContent; };
    [...table.tHead.rows[0].cells].forEach((head, index) => {
      const button = make("button", head.textContent, { type: "button" });
      head.replaceChildren(button);
      button.onclick = () => {
        const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        const isNumber = head.classList.contains("n");
        rows.sort((a, b) => {
          const [left, right] = [value(a, index), value(b, index)];
          if (!isNumber) return sign * left.localeCompare(right);
          if (left === "" || right === "") return (left === "") - (right === ""); // what has no figure is last either way
          return sign * (left - right);
        });
        table.tBodies[0].append(...rows);
      };
    });
  }

  addEventListener("hashchange", open);
  addEventListener("resize", () => plots.forEach((plot) => {
    if (plot.holder.clientWidth) plot.setSize({ width: plot.holder.clientWidth, height: HEIGHT });
  }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((plot) => plot.redraw()));
  overview();
  open();
})();

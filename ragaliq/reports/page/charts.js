// Trend and distribution of each metric, drawn at the width there is so that labels stay readable.

const EDGE = { left: 34, right: 10, top: 8, bottom: 22 };

function drawCharts() {
  const place = DATA.pipelines.findIndex((_, position) => pipelineName(position) === chosen.pipeline);
  const key = chosen.pipeline === "" || DATA.pipelines.length < 2 ? "all" : String(place);
  const box = byId("charts");
  const open = new Set([...box.querySelectorAll("details[open]")].map((each) => each.id));
  box.replaceChildren(...chosenSeries().map((position) => chartRow(position, key, open)));
}

function chartRow(position, key, open) {
  const series = DATA.series[position];
  const charts = series.charts[key];
  const row = el("div", { class: "chart-row" }, el("h3", {}, isolated(seriesName(series))));
  if (!charts || charts.mean === null) {
    row.append(el("p", { class: "fine" }, "Nothing was scored."));
    return row;
  }
  const width = byId("charts").clientWidth - 30;
  const narrow = matchMedia("(max-width: 54rem)").matches;
  const parts = narrow ? [width, width] : [(width - 24) * 0.6875, (width - 24) * 0.3125];
  // Without a trend there is nothing to show of it.
  if (charts.points.length > 1) row.append(figure(trendCaption(), trendChart(series, charts, parts[0])));
  else row.classList.add("alone");
  row.append(
    figure(distributionCaption(charts), barChart(series, charts, charts.points.length > 1 ? parts[1] : width)),
    numbersOf(charts, `numbers-${position}`, open),
  );
  return row;
}

function figure(caption, picture) {
  return el("figure", {}, el("figcaption", {}, caption), picture);
}

function trendCaption() {
  return `Mean over time, ${length(DATA.width)} each`;
}

function length(width) {
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"]];
  const [size, unit] = units.find(([each]) => width >= each);
  const count = Math.round(width / size);
  return `${count} ${unit}${count > 1 ? "s" : ""}`;
}

function distributionCaption({ bins }) {
  return `Distribution of ${number(bins.reduce((sum, count) => sum + count, 0))} scores`;
}

function trendChart(series, { mean, points }, width) {
  const height = 150;
  const lowest = Math.min(series.threshold, ...points.map((point) => point[2]));
  const bottom = Math.min(0.7, Math.max(0, Math.floor(lowest * 10) / 10));
  const first = points[0][0];
  const last = points[points.length - 1][0] + DATA.width;
  const x = (time) => EDGE.left + ((time - first) / (last - first)) * (width - EDGE.left - EDGE.right);
  const y = (value) => EDGE.top + ((1 - value) / (1 - bottom)) * (height - EDGE.top - EDGE.bottom);
  const middle = (point) => x(point[0] + DATA.width / 2);
  const words = `${seriesName(series)} over time: mean ${score(points[0][1])} in the first span and ` +
    `${score(points[points.length - 1][1])} in the last; ${score(mean.value)} over all`;
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words });
  for (const value of ticks(bottom)) {
    picture.append(
      svg("line", { class: "axis", x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }),
      svg("text", { x: EDGE.left - 6, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(1)),
    );
  }
  picture.append(...timeLabels(first, last, x, height, width));
  const level = y(series.threshold);
  picture.append(svg("line", { class: "goal", x1: EDGE.left, x2: width - EDGE.right, y1: level, y2: level }));
  for (const run of unbroken(points)) {
    const upper = run.map((point) => `${middle(point)},${y(point[3])}`);
    const lower = run.map((point) => `${middle(point)},${y(point[2])}`).reverse();
    picture.append(
      svg("polygon", { class: "band", points: [...upper, ...lower].join(" ") }),
      svg("polyline", { class: "line", points: run.map((point) => `${middle(point)},${y(point[1])}`).join(" ") }),
    );
  }
  for (const point of points) {
    const label = `${moment(point[0])}: ${score(point[1])} (${score(point[2])} to ${score(point[3])}), ${number(point[4])} scores`;
    const whisker = { class: "range", x1: middle(point), x2: middle(point), y1: y(point[3]), y2: y(point[2]) };
    if (points.length <= 12) picture.append(svg("line", whisker));
    picture.append(svg("circle", { class: "dot", cx: middle(point), cy: y(point[1]), r: 2.5 }, svg("title", {}, label)));
  }
  picture.append(...dimmed(first, last, x, height));
  return picture;
}

function ticks(bottom) {
  const step = bottom < 0.45 ? 0.2 : 0.1;
  const count = Math.floor((1 - bottom) / step + 1e-9);
  return Array.from({ length: count + 1 }, (_, i) => 1 - i * step);
}

function timeLabels(first, last, x, height, width) {
  const count = Math.max(2, Math.min(6, Math.floor(width / 110)));
  const long = last - first > 3 * 86400;
  return Array.from({ length: count }, (_, i) => {
    const time = first + ((last - first) * i) / (count - 1);
    const anchor = i === 0 ? "start" : i === count - 1 ? "end" : "middle";
    const words = long ? moment(time).slice(5, 10) : moment(time).slice(5);
    return svg("text", { x: x(time), y: height - 6, "text-anchor": anchor }, words);
  });
}

// A span without scores interrupts the line: nothing was measured there.
function unbroken(points) {
  const runs = [];
  let before = -Infinity;
  for (const point of points) {
    if (point[0] - before > DATA.width * 1.5) runs.push([]);
    runs[runs.length - 1].push(point);
    before = point[0];
  }
  return runs;
}

function dimmed(first, last, x, height) {
  const from = Math.min(last, Math.max(first, seconds(chosen.from) ?? first));
  const until = Math.max(from, Math.min(last, seconds(chosen.until) ?? last));
  return [[first, from], [until, last]]
    .filter(([start, end]) => end > start)
    .map(([start, end]) => svg("rect", { class: "dim", x: x(start), width: x(end) - x(start), y: 0, height: height - EDGE.bottom }));
}

function barChart(series, { bins }, width) {
  const height = 150;
  const most = Math.max(1, ...bins);
  const step = (width - EDGE.left - EDGE.right) / bins.length;
  const room = height - EDGE.top - EDGE.bottom;
  const edge = Math.round(series.threshold * bins.length);
  const failing = (series.higher_is_better ? bins.slice(0, edge) : bins.slice(edge)).reduce((sum, count) => sum + count, 0);
  const words = `Distribution of ${seriesName(series)}: ${number(failing)} scores ${side(series)} ${series.threshold.toFixed(2)}, ` +
    `${number(bins[bins.length - 1])} of 0.95 or more`;
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words });
  for (const value of [0, most]) {
    const level = EDGE.top + room * (1 - value / most);
    picture.append(
      svg("line", { class: "axis", x1: EDGE.left, x2: width - EDGE.right, y1: level, y2: level }),
      svg("text", { x: EDGE.left - 6, y: level + 4, "text-anchor": "end" }, compact(value)),
    );
  }
  bins.forEach((count, i) => {
    const tall = count ? Math.max(1.5, (count / most) * room) : 0;
    const place = { x: EDGE.left + i * step + 0.5, width: Math.max(1, step - 1), y: EDGE.top + room - tall, height: tall };
    const label = `${(i / bins.length).toFixed(2)} to ${((i + 1) / bins.length).toFixed(2)}: ${number(count)}`;
    picture.append(svg("rect", { class: "bar", ...place }, svg("title", {}, label)));
  });
  const goal = EDGE.left + series.threshold * step * bins.length;
  picture.append(svg("line", { class: "goal", x1: goal, x2: goal, y1: EDGE.top, y2: EDGE.top + room }));
  for (const [value, anchor] of [[0, "start"], [0.5, "middle"], [1, "end"]]) {
    const at = EDGE.left + value * step * bins.length;
    picture.append(svg("text", { x: at, y: height - 6, "text-anchor": anchor }, String(value)));
  }
  return picture;
}

function compact(count) {
  return count >= 1000 ? `${(count / 1000).toFixed(count >= 10000 ? 0 : 1)}k` : String(count);
}

function numbersOf({ bins, points }, id, open) {
  const trend = points.map((point) => [moment(point[0]), score(point[1]), `${score(point[2])} – ${score(point[3])}`, number(point[4])]);
  const spread = bins.map((count, i) => [`${(i / bins.length).toFixed(2)} – ${((i + 1) / bins.length).toFixed(2)}`, number(count)]);
  const body = el("div", {});
  const details = el("details", { id, open: open.has(id) && "" }, el("summary", {}, "Numbers"), body);
  const show = () => {
    if (!details.open || body.firstChild) return;
    if (trend.length > 1) body.append(numberTable(["From (UTC)", "Mean", "95 % interval", "Scores"], trend));
    body.append(numberTable(["Score", "Answers"], spread));
  };
  details.addEventListener("toggle", show);
  return details;
}

function numberTable(names, rows) {
  return el("table", {},
    el("thead", {}, el("tr", {}, names.map((name, i) => el("th", { scope: "col", class: i ? "n" : null }, name)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, i) => el("td", { class: i ? "n" : null }, cell))))),
  );
}

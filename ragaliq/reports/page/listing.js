// Which answers are listed, in which order, and moving through them by keyboard.

const PAGE = 100;
let listed = [];
let shown = 0;
let words = null;

function textOf(place) {
  if (words === null) words = new Map();
  if (!words.has(place)) words.set(place, allText(place).toLowerCase());
  return words.get(place);
}

function allText(place) {
  const row = DATA.rows[place];
  const full = fullAnswer(place);
  if (full === null) return `${row[ROW.run]}`;
  const parts = [row[ROW.run], full.case_id, full.query ?? "", full.name];
  for (const set of full.sets) {
    for (const [piece] of set.answer ?? []) parts.push(piece);
    parts.push("\n");
    for (const claim of set.claims) parts.push(claim.text ?? "", "\n");
  }
  return parts.join("");
}

function matches(place) {
  const row = DATA.rows[place];
  const results = row.slice(ROW.results).filter(([series]) => isChosenSeries(series));
  if (results.length === 0) return false;
  if (chosen.pipeline !== "" && pipelineName(row[ROW.pipeline]) !== chosen.pipeline) return false;
  const verdict = VERDICT_CHOICES.findIndex(([value]) => value === chosen.verdict);
  if (verdict > 0 && row[ROW.verdicts][verdict - 1] === 0) return false;
  if (chosen.status !== "" && !results.some(([, , status]) => DATA.statuses[status] === chosen.status)) return false;
  const [from, until] = [seconds(chosen.from), seconds(chosen.until)];
  if (from !== null && row[ROW.time] < from) return false;
  if (until !== null && row[ROW.time] >= until) return false;
  return chosen.text === "" || textOf(place).includes(chosen.text.toLowerCase());
}

// Lower is worse; what was not measured comes last.
function goodness(place) {
  const values = DATA.rows[place].slice(ROW.results)
    .filter(([series, value]) => value !== null && isChosenSeries(series))
    .map(([series, value]) => (DATA.series[series].higher_is_better ? value : 1 - value));
  return values.length ? Math.min(...values) : 2;
}

function list() {
  listed = [];
  for (let place = 0; place < DATA.rows.length; place++) if (matches(place)) listed.push(place);
  if (chosen.metric !== "") {
    const value = new Map(listed.map((place) => [place, goodness(place)]));
    listed.sort((a, b) => value.get(a) - value.get(b) || a - b);
  }
  shown = 0;
  byId("list").replaceChildren();
  showMore(Math.max(0, selectedPosition()) + 1);
  const without = chosen.text !== "" && DATA.rows.length > Object.keys(DATA.answers).length;
  byId("found").textContent = `${number(listed.length)} of ${number(DATA.rows.length)}` +
    (without ? "; only answers that are here in full are searched by their text" : "");
}

function showMore(atLeast) {
  const end = Math.min(listed.length, Math.max(shown + PAGE, Math.ceil(atLeast / PAGE) * PAGE));
  byId("list").append(...listed.slice(shown, end).map(item));
  shown = end;
  byId("more").hidden = shown >= listed.length;
}

function item(place) {
  const row = DATA.rows[place];
  const full = fullAnswer(place);
  const value = goodness(place);
  const query = full?.query ?? null;
  const lowest = value > 1 ? null : row.slice(ROW.results).filter(([series, found]) => found !== null && isChosenSeries(series))
    .reduce((low, each) => (valueOf(each) < valueOf(low) ? each : low));
  return el("li", { id: `row-${place}`, role: "option", "aria-selected": row[ROW.id] === chosen.answer ? "true" : "false", "data-place": place },
    el("span", { class: lowest ? "score" : "score none" }, score(lowest ? lowest[1] : null)),
    el("span", { class: query === null ? "what bare" : "what", dir: "auto" }, query === null ? row[ROW.run] : query.slice(0, 200)),
    el("span", { class: "by" }, lowest === null ? "" : isolated(DATA.series[lowest[0]].metric)),
    el("span", { class: "more" },
      el("span", { title: moment(row[ROW.time]) }, moment(row[ROW.time]).slice(5)),
      row[ROW.verdicts].map((count, i) => (count ? verdictCount(i, count) : null)),
      lowest ? null : isolated(DATA.statuses[row[ROW.results]?.[2]] ?? ""),
      DATA.pipelines.length > 1 ? isolated(pipelineName(row[ROW.pipeline])) : null),
  );
}

function valueOf([series, value]) {
  return DATA.series[series].higher_is_better ? value : 1 - value;
}

function verdictCount(i, count) {
  const verdict = [...Object.values(VERDICTS), NO_VERDICT][i];
  return el("span", { title: `${count} ${verdict.words}` }, tag(verdict), ` ${count}`);
}

function selectedPosition() {
  return listed.findIndex((place) => DATA.rows[place][ROW.id] === chosen.answer);
}

function select(position, { reveal = true } = {}) {
  if (position < 0 || position >= listed.length) return;
  const place = listed[position];
  if (position >= shown) showMore(position + 1);
  for (const old of byId("list").querySelectorAll("[aria-selected=true]")) old.setAttribute("aria-selected", "false");
  const row = byId(`row-${place}`);
  row.setAttribute("aria-selected", "true");
  byId("list").setAttribute("aria-activedescendant", row.id);
  if (reveal) within(byId("list"), row);
  if (chosen.answer !== DATA.rows[place][ROW.id]) Object.assign(chosen, { answer: DATA.rows[place][ROW.id], set: "", claim: "" });
  showAnswer(place);
  writeAddress();
}

// Scrolls the pane and not the page.
function within(pane, node) {
  const [outer, inner] = [pane.getBoundingClientRect(), node.getBoundingClientRect()];
  if (inner.top < outer.top) pane.scrollTop -= outer.top - inner.top + 8;
  else if (inner.bottom > outer.bottom) pane.scrollTop += Math.min(inner.bottom - outer.bottom + 8, inner.top - outer.top);
}

function moveThroughList(event) {
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  if (event.key === "Enter") {
    event.preventDefault();
    byId("answer").focus();
  } else if (Object.hasOwn(steps, event.key)) {
    event.preventDefault();
    select(Math.max(0, Math.min(listed.length - 1, selectedPosition() + steps[event.key])));
  }
}

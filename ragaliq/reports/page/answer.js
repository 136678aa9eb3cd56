// One answer: its text with the claims marked by verdict, the claims, and the chunks with evidence.

function showAnswer(place) {
  const row = DATA.rows[place];
  const full = fullAnswer(place);
  byId("answer").replaceChildren(...(full === null ? bareAnswer(row) : wholeAnswer(row, full)));
  if (full !== null) markClaim(full, { scroll: true });
}

function bareAnswer(row) {
  return [
    el("h3", { dir: "auto" }, row[ROW.run]),
    meta([["evaluated", moment(row[ROW.time])], ["pipeline", pipelineName(row[ROW.pipeline])]]),
    resultTable(row.slice(ROW.results).map(([series, value, status]) => ({
      name: seriesName(DATA.series[series]), score: value, status: DATA.statuses[status], threshold: DATA.series[series].threshold,
      higher_is_better: DATA.series[series].higher_is_better,
    }))),
    el("p", { class: "empty" }, "This answer is not in the page in full; only the worst are."),
  ];
}

function wholeAnswer(row, full) {
  const set = currentSet(full);
  return [
    el("h3", { dir: "auto" }, full.query ?? row[ROW.run]),
    scores(full.metrics),
    meta([
      ["evaluated", moment(row[ROW.time])], ["pipeline", pipelineName(row[ROW.pipeline])], ["run", row[ROW.run]],
      ["row", row[ROW.run] === `row ${full.row}` ? null : full.row], ["framework", full.framework], ["session", full.session], ["trace", traceLink(full.trace)], ["tags", full.tags.join(", ")],
      ["chance of being chosen", full.probability < 1 ? `${full.probability} (${full.reason})` : ""],
    ]),
    full.sets.length > 1 ? setButtons(full) : null,
    el("div", { class: "body" },
      el("div", {}, el("h4", {}, "Answer"), answerText(full, set), el("h4", {}, claimsTitle(set)), claimList(full, set)),
      el("div", {}, el("h4", {}, `Context: ${set.chunks.length} chunk${set.chunks.length === 1 ? "" : "s"}`), chunkList(full, set)),
    ),
    el("h4", {}, "Results"),
    resultTable(full.metrics),
    full.input.length ? el("h4", {}, "Further columns") : null,
    full.input.length ? el("dl", { class: "input" }, full.input.map(([name, value]) => [el("dt", { dir: "auto" }, name), el("dd", { class: "text", dir: "auto" }, value)])) : null,
  ].filter((node) => node !== null);
}

function meta(pairs) {
  return el("div", { class: "meta" }, pairs.filter(([, value]) => value).map(([name, value]) => el("span", {}, `${name} `, el("b", {}, isolated(value)))));
}

function traceLink(trace) {
  if (!trace || !DATA.trace_url) return trace;
  return el("a", { href: DATA.trace_url.replaceAll("{trace_id}", encodeURIComponent(trace)), target: "_blank", rel: "noopener" }, trace);
}

function scores(results) {
  return el("div", { class: "scores" }, results.map((result) => el("span", { class: result.passed === false ? "below" : null },
    isolated(result.name), " ", el("b", {}, score(result.score)), result.score === null ? ` ${result.status}` : result.passed ? " passed" : ` ${side(result)}`)));
}

function resultTable(results) {
  const judged = results.some((result) => result.judge !== undefined);
  const names = ["Metric", "Score", "Passes", "Status", ...(judged ? ["Judge's words"] : [])];
  return el("div", { class: "wide results" }, el("table", {},
    el("thead", {}, el("tr", {}, names.map((name, i) => el("th", { scope: "col", class: i === 1 || i === 2 ? "n" : null }, name)))),
    el("tbody", {}, results.map((result) => el("tr", {},
      el("th", { scope: "row" }, isolated(result.name), judged ? el("small", {}, " ", isolated(result.model ?? result.judge)) : null),
      el("td", { class: "n strong", "data-label": names[1] }, score(result.score)),
      el("td", { class: "n", "data-label": names[2] }, passingScores(result)),
      el("td", { "data-label": names[3] }, isolated(outcome(result))),
      judged ? el("td", { dir: "auto", "data-label": names[4] }, result.reasoning ?? "") : null,
    ))),
  ));
}

function outcome(result) {
  if (result.error) return `${result.status}: ${result.error}`;
  if (result.passed === true) return `${result.status}, passed`;
  return result.passed === false ? `${result.status}, ${side(result)} the threshold` : result.status;
}

function currentSet(full) {
  const asked = Number(chosen.set);
  if (Number.isInteger(asked) && asked > 0 && asked <= full.sets.length) return full.sets[asked - 1];
  const place = full.sets.findIndex((set) => set.metrics.includes(chosen.metric));
  return full.sets[Math.max(0, place)];
}

function setButtons(full) {
  const current = currentSet(full);
  return el("div", { class: "sets", role: "group", "aria-label": "Claims of" }, full.sets.map((set, i) =>
    el("button", { type: "button", "aria-pressed": set === current ? "true" : "false", on: { click: () => chooseSet(i) } }, set.metrics.join(", "))));
}

function chooseSet(i) {
  Object.assign(chosen, { set: String(i + 1), claim: "" });
  select(selectedPosition());
}

function worstOf(set, numbers) {
  return numbers.map((i) => verdictOf(set.claims[i])).reduce((worst, each) => (each.rank > worst.rank ? each : worst));
}

function answerText(full, set) {
  if (set.answer === null) return el("p", { class: "empty" }, full.has_text ? "This answer is empty, or its text was not kept." : "No text: content capture was off.");
  const ends = new Map();
  set.answer.forEach(([, numbers], place) => numbers.forEach((i) => ends.set(i, place)));
  return el("div", { class: "text response", id: "response", dir: "auto" }, set.answer.map(([piece, numbers], place) => {
    if (numbers.length === 0) return piece;
    const tags = numbers.filter((i) => ends.get(i) === place).map((i) => `${i + 1}${verdictOf(set.claims[i]).letter}`);
    return el("mark", {
      class: worstOf(set, numbers).kind, "data-claims": numbers.join(" "), "data-tag": tags.length ? tags.join(" ") : null,
      on: { click: () => chooseClaim(full, numbers) },
    }, piece);
  }));
}

function claimsTitle(set) {
  const more = set.omitted ? `, ${number(set.omitted)} more were not stored` : "";
  return `Claims (${set.claims.length}${more})${set.metrics.length ? ` of ${set.metrics.join(" and ")}` : ""}`;
}

function claimList(full, set) {
  if (set.claims.length === 0) return el("p", { class: "empty" }, "No claims were judged.");
  const located = new Set((set.answer ?? []).flatMap(([, numbers]) => numbers));
  return el("ol", { class: "claims", on: { keydown: moveThroughClaims } }, set.claims.map((claim, i) => el("li", {},
    el("button", { type: "button", "data-claim": i, "aria-expanded": "false", on: { click: () => chooseClaim(full, [i]) } },
      el("span", { class: "number" }, `${i + 1}`), tag(verdictOf(claim)),
      el("span", { dir: "auto" }, claim.text ?? `${verdictOf(claim).words} (no text kept)`,
        set.answer !== null && !located.has(i) ? el("small", {}, " not located in the answer") : null)),
    el("div", { class: "why", hidden: "" }, claimReasons(claim)))));
}

// An uncalibrated confidence is not a probability, and must not read like one.
function certainty(claim) {
  const figure = claim.confidence.toFixed(2);
  return claim.calibration === "uncalibrated" ? `confidence ${figure} (uncalibrated)` : `probability ${figure} (calibration ${claim.calibration})`;
}

// This turn's context goes without saying.
const RESTS_ON = { prompt: "the rest of the prompt", earlier_turn: "an earlier turn's context", user: "what the user said" };

function claimReasons(claim) {
  const evidence = claim.evidence ? `${claim.evidence}${claim.verified ? "" : "  (not found in the context word for word)"}` : "";
  const pairs = [
    ["Verdict", `${verdictOf(claim).words}, ${certainty(claim)}`], ["Decided by", claim.by],
    ["Reason", claim.reason], ["Evidence", evidence], ["Rests on", RESTS_ON[claim.source]], ["Chunks", claim.chunk_ids.join(", ")],
  ];
  return el("dl", {}, pairs.filter(([, value]) => value).map(([name, value]) => [el("dt", {}, name), el("dd", { class: "text", dir: "auto" }, value)]));
}

function chunkList(full, set) {
  if (!full.has_text) return el("p", { class: "empty" }, "No text: content capture was off.");
  if (set.chunks.length === 0) return el("p", { class: "empty" }, "There was no context.");
  return el("div", { class: "chunks", id: "chunks", tabindex: 0, role: "region", "aria-label": "Context chunks" }, set.chunks.map((chunk) =>
    el("div", { class: "chunk", "data-chunk": chunk.id },
      el("header", {}, el("span", {}, "chunk ", isolated(chunk.id)), chunk.score === null ? null : `retrieval score ${chunk.score}`),
      chunk.text === null
        ? el("p", { class: "empty" }, chunk.length === null ? "This chunk is empty, or its text was not kept." : `${number(chunk.length)} characters, too long for this page.`)
        : el("div", { class: "text", dir: "auto" }, chunk.text.map(([piece, numbers]) =>
          numbers.length ? el("mark", { "data-claims": numbers.join(" ") }, piece) : piece)))));
}

// Of several claims in one place the next one is taken each time it is clicked.
function chooseClaim(full, numbers) {
  const current = numbers.indexOf(Number(chosen.claim) - 1);
  chosen.claim = String(numbers[(current + 1) % numbers.length] + 1);
  markClaim(full, { scroll: true });
  writeAddress();
}

function firstToLookAt(set) {
  const ranks = set.claims.map((claim) => verdictOf(claim).rank);
  return ranks.indexOf(Math.max(...ranks));
}

function markClaim(full, { scroll }) {
  const set = currentSet(full);
  const asked = Number(chosen.claim) - 1;
  const i = chosen.claim !== "" && asked in set.claims ? asked : firstToLookAt(set);
  for (const node of byId("answer").querySelectorAll("mark")) node.classList.toggle("on", node.dataset.claims.split(" ").includes(String(i)));
  for (const button of byId("answer").querySelectorAll("[data-claim]")) {
    const isIt = button.dataset.claim === String(i);
    button.setAttribute("aria-expanded", isIt ? "true" : "false");
    button.nextElementSibling.hidden = !isIt;
  }
  const pane = byId("chunks");
  if (pane === null || i < 0) return;
  const ids = set.claims[i].chunk_ids;
  for (const chunk of pane.children) chunk.classList.toggle("cited", ids.includes(chunk.dataset.chunk));
  const evidence = pane.querySelector("mark.on") ?? pane.querySelector(".cited");
  if (scroll && evidence) {
    pane.scrollTop += evidence.closest(".chunk").getBoundingClientRect().top - pane.getBoundingClientRect().top;
    within(pane, evidence);
  }
}

function moveThroughClaims(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const buttons = [...event.currentTarget.querySelectorAll("button")];
  const next = buttons[buttons.indexOf(document.activeElement) + step];
  if (next) next.focus();
  event.preventDefault();
}

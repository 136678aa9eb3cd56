// The data, what is chosen, and the part of the address that keeps it.

const DATA = JSON.parse(byId("data").textContent);
const ROW = { id: 0, run: 1, time: 2, pipeline: 3, verdicts: 4, results: 5 };
const FILTERS = ["metric", "pipeline", "verdict", "status", "from", "until", "text"];
const chosen = { metric: "", pipeline: "", verdict: "", status: "", from: "", until: "", text: "", answer: "", set: "", claim: "" };

function seriesName(series) {
  const twins = DATA.series.filter((other) => other.metric === series.metric);
  return twins.length > 1 ? `${series.metric} (${series.decider})` : series.metric;
}

function passingScores({ threshold, higher_is_better: high }) {
  return `${high ? "at least" : "at most"} ${threshold.toFixed(2)}`;
}

function side({ higher_is_better: high }) {
  return high ? "below" : "above";
}

function fullAnswer(place) {
  return Object.hasOwn(DATA.answers, place) ? DATA.answers[place] : null;
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(chosen)) chosen[name] = given.get(name) ?? "";
}

function writeAddress() {
  const kept = Object.entries(chosen).filter(([, value]) => value !== "");
  const address = `#${new URLSearchParams(kept)}`;
  // Not as new entries of the history: going back should leave the page.
  if (address !== location.hash) history.replaceState(null, "", address);
}

function seconds(text) {
  const milliseconds = text === "" ? NaN : Date.parse(`${text}Z`);
  return Number.isNaN(milliseconds) ? null : milliseconds / 1000;
}

function resultOf(row, series) {
  for (let i = ROW.results; i < row.length; i++) if (row[i][0] === series) return row[i];
  return null;
}

function isChosenSeries(position) {
  return chosen.metric === "" || seriesName(DATA.series[position]) === chosen.metric;
}

function chosenSeries() {
  return DATA.series.map((_, position) => position).filter(isChosenSeries);
}

function pipelineName(position) {
  return DATA.pipelines[position] || "(no name)";
}

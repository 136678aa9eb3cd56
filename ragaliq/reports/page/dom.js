// Elements are made one by one and text is only ever text: nothing here parses markup.

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== "") node.append(child);
  }
  return node;
}

function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

function isolated(text) {
  return el("bdi", {}, text);
}

function number(value) {
  return value.toLocaleString("en-US");
}

function score(value) {
  return value === null ? "–" : value.toFixed(2);
}

function moment(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
}

const VERDICTS = {
  SUPPORTED: { letter: "S", kind: "s", words: "supported", rank: 0 },
  CONTRADICTED: { letter: "C", kind: "c", words: "contradicted", rank: 3 },
  NOT_ENOUGH_INFO: { letter: "N", kind: "n", words: "not covered", rank: 2 },
};
const NO_VERDICT = { letter: "?", kind: "u", words: "no verdict", rank: 1 };

function verdictOf(claim) {
  return Object.hasOwn(VERDICTS, claim.verdict ?? "") ? VERDICTS[claim.verdict] : NO_VERDICT;
}

function tag(verdict) {
  return el("span", { class: `tag ${verdict.kind}`, title: verdict.words }, verdict.letter);
}

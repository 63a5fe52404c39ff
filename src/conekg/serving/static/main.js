// The page's controller. Components fire events; this module asks the server and updates them.

import "./answers.js";
import "./builder.js";
import "./cones.js";
import "./explanation.js";
import "./notice.js";
import "./question.js";
import "./reading.js";
import * as api from "./api.js";
import { debounce, html } from "./dom.js";

const PAGE_OF_ANSWERS = 10;
/** Kinds of errors that are shown at the text of the question rather than as a notice. */
const ABOUT_THE_TEXT = new Set([
  "query_syntax", "unknown_name", "query", "query_too_large", "unsupported_operator", "invalid_request",
]);

const part = (name) => document.querySelector(name);
const question = part("ck-question");
const reading = part("ck-reading");
const builder = part("ck-builder");
const answers = part("ck-answers");
const explanation = part("ck-explanation");
const cones = part("ck-cones");
const notice = part("ck-notice");
const details = [part(".why-card"), part(".cones-card")];

const state = {
  drawn: "", asked: "", refused: null, only: null, topK: PAGE_OF_ANSWERS, mostAnswers: Infinity,
};

/** The value of `work(signal)`; null if a later run of the same kind has taken its place. */
const turns = {};
async function latest(kind, work) {
  turns[kind]?.abort();
  const turn = (turns[kind] = new AbortController());
  try {
    const value = await work(turn.signal);
    return turn.signal.aborted ? null : value;
  } catch (error) {
    if (turn.signal.aborted || error.name === "AbortError") return null;
    throw error;
  }
}

/** Abort what runs of these kinds, and drop their failures. */
function forget(...kinds) {
  for (const kind of kinds) turns[kind]?.abort();
  settle(...kinds);
}

/** Failed requests that can be tried again, by kind. One notice shows them; its button retries all. */
const failures = new Map();

function report(kind, error, retry) {
  if (!(error instanceof api.ApiError)) throw error;
  // If an answer cannot be explained, the text of the question is still right: it was answered.
  if (kind !== "explain" && ABOUT_THE_TEXT.has(error.kind)) {
    if (kind === "ask") state.refused = { text: state.asked, error };
    question.showError(error);
    settle(kind);
    return;
  }
  failures.set(kind, { error, retry });
  notice.show(error);
}

/** Drop the failures of these kinds, and show another one that is left. */
function settle(...kinds) {
  for (const kind of kinds) failures.delete(kind);
  const [left] = failures.values();
  if (left) notice.show(left.error);
  else notice.clear();
}

function showParsed(parsed, text) {
  settle("parse");
  state.drawn = text;
  // A question that can be parsed and drawn may still be refused, for example for too many branches.
  question.showError(text === state.refused?.text ? state.refused.error : null);
  reading.show(parsed);
  builder.show(parsed?.tree ?? null);
}

async function understand(text) {
  understandSoon.cancel();
  if (text === "") {
    forget("parse");
    showParsed(null, "");
    return;
  }
  try {
    const parsed = await latest("parse", (signal) => api.parse({ query: text }, signal));
    if (parsed) showParsed(parsed, text);
  } catch (error) {
    if (text !== state.drawn) {
      builder.hold();
      reading.hold();
    }
    report("parse", error, () => understand(text));
  }
}
const understandSoon = debounce(understand, 220);

function clearQuestion() {
  question.text = "";
  understand("");
  forgetAnswers();
}

/** Begin a new question, also in the address. */
function startAfresh() {
  clearQuestion();
  remember("");
}

/** Ask the question of a tree from the builder, unless the text was changed after it was drawn. */
async function build(tree, text = state.drawn) {
  if (question.text !== text) {
    understand(question.text);
    return;
  }
  understandSoon.cancel();
  if (tree === null) {
    startAfresh();
    return;
  }
  try {
    const parsed = await latest("parse", (signal) => api.parse({ tree }, signal));
    if (!parsed || question.text !== text) return;
    question.text = parsed.query;
    showParsed(parsed, question.text);
    await ask(parsed.query);
  } catch (error) {
    report("parse", error, () => build(tree, text));
  }
}

function hideDetails() {
  awaitReasons.cancel();
  for (const card of details) card.hidden = true;
  tell("");
}

/** Announce to screen readers what others see happen elsewhere on the page. */
function tell(text) {
  part("#news").textContent = text;
}

/** Put the question into the title, to tell tabs, bookmarks and the browser's history apart. */
function entitle(text) {
  document.title = text === "" ? "conekg" : `${text} · conekg`;
}

function forgetAnswers() {
  forget("ask", "explain");
  hideDetails();
  answers.clear();
  state.asked = "";
  entitle("");
}

/** Put a question into the address, for links and for the browser's Back button. */
function remember(text) {
  if (text === linked()) return;
  history.pushState(null, "", text === "" ? location.pathname : `#q=${encodeURIComponent(text)}`);
}

/** The question in the address: all after `#q=`, as a link written by hand may have a bare `&` or `%`. */
function linked() {
  const [, text] = location.hash.match(/^#q=(.*)$/s) ?? [null, ""];
  try {
    return decodeURIComponent(text.replaceAll(/%(?![\da-f]{2})/gi, "%25")).trim();
  } catch {
    return text.trim(); // the escapes are not valid UTF-8
  }
}

/** Get and show the best answers to the current question; false if a later one has taken its place. */
async function showAnswers(topK) {
  const body = { query: state.asked, top_k: topK, only: state.only };
  const response = await latest("ask", (signal) => api.ask(body, signal));
  if (!response) return false;
  settle("ask");
  state.topK = topK;
  answers.show(response, { mayHaveMore: response.answers.length === topK && topK < state.mostAnswers });
  return true;
}

/** Ask a question and show its answers; true if they are shown. A later question may take its place. */
async function ask(text) {
  if (text === "") {
    remember("");
    forgetAnswers();
    return false;
  }
  Object.assign(state, { asked: text, refused: null });
  remember(text);
  entitle(text);
  forget("explain");
  hideDetails();
  answers.wait();
  try {
    const isShown = await showAnswers(Math.min(PAGE_OF_ANSWERS, state.mostAnswers));
    // The error may be of a later text.
    if (isShown && question.text === text) question.showError(null);
    return isShown;
  } catch (error) {
    answers.clear();
    report("ask", error, () => ask(text));
    return false;
  }
}

/** Show more answers to the same question; if that fails, those that are shown stay. */
async function askForMore() {
  answers.waitForMore();
  tell("Looking for more answers…");
  try {
    if (!(await showAnswers(Math.min(state.topK * 3, state.mostAnswers)))) return;
    forget("explain");
    hideDetails(); // the rows are new, so none is marked as explained
  } catch (error) {
    tell("");
    if (error instanceof api.ApiError && error.kind !== "missing_key") {
      answers.showFailure(error);
    } else {
      answers.keep();
      report("ask", error, askForMore);
    }
  }
}

async function askAndUnderstand(text) {
  const [isAnswered] = await Promise.all([ask(text), understand(text)]);
  return isAnswered;
}

function bringIntoView(element, block) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ block, behavior: calm ? "auto" : "smooth" });
}

/**
 * Ask a question that was typed or chosen. On a narrow screen, where all cards are in one column,
 * scroll to the answers: they may be below the screen's edge or behind its keyboard.
 */
async function askAndLook(text) {
  if (!(await askAndUnderstand(text))) return;
  const [drawing, card] = [part(".graph-card"), part(".answers-card")];
  if (card.offsetLeft === drawing.offsetLeft) bringIntoView(card, "start");
}

/** Show the card, then call `fill`: a drawing is laid out for the width of a visible card. */
function showWhy(answer, fill) {
  const [why] = details;
  part("#explanation-title").replaceChildren("Why ", html("bdi", {}, answer.label));
  why.hidden = false;
  fill();
  bringIntoView(why, "nearest");
}

/** Say that reasons are being looked for, but only if they take longer than a moment. */
const awaitReasons = debounce((answer) => {
  details[1].hidden = true;
  showWhy(answer, () => explanation.wait());
}, 250);

async function explain(answer) {
  const query = state.asked;
  answers.choose(answer.name);
  tell("Looking for reasons…");
  awaitReasons(answer);
  try {
    // One after the other, as the server may be limited to one explanation at a time.
    const both = await latest("explain", async (signal) => [
      await api.explain({ query, answer: answer.name }, signal),
      await api.cones({ query, answer: answer.name }, signal),
    ]);
    if (!both) return;
    settle("explain");
    awaitReasons.cancel();
    details[1].hidden = both[1].cones.length === 0;
    cones.show(both[1], both[0].witnesses[0]?.answer.member);
    showWhy(answer, () => explanation.show(both[0]));
    tell(explanation.querySelector("p").textContent);
  } catch (error) {
    hideDetails();
    report("explain", error, () => explain(answer));
  }
}

function listen() {
  document.addEventListener("question-typed", ({ detail }) => understandSoon(detail.text));
  document.addEventListener("question-asked", ({ detail }) => askAndLook(detail.text));
  document.addEventListener("question-built", ({ detail }) => build(detail.tree));
  document.addEventListener("question-dropped", startAfresh);
  document.addEventListener("question-chosen", ({ detail }) => {
    question.text = detail.text;
    askAndLook(detail.text);
  });
  document.addEventListener("answer-chosen", ({ detail }) => explain(detail.answer));
  document.addEventListener("answers-more", askForMore);
  document.addEventListener("answers-filtered", ({ detail }) => {
    state.only = detail.only;
    if (state.asked) ask(state.asked);
  });
  document.addEventListener("retry", () => {
    const undone = [...failures.values()];
    forget(...failures.keys());
    for (const { retry } of undone) retry();
  });
  // As a normal link, it would replace the question in the address.
  part(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    part("#answers-title").focus();
  });
  window.addEventListener("popstate", openLink); // Back, Forward, or an edited address
}

function openLink() {
  const text = linked();
  if (text === state.asked) return;
  if (text === "") {
    clearQuestion();
    return;
  }
  question.text = text;
  askAndUnderstand(text);
}

/** Show what the server has, then ask the question of the link, whose text is `given`. */
async function start(given) {
  try {
    const about = await api.about();
    settle("about");
    part("#source").textContent =
      `${about.graph} · ${about.num_entities.toLocaleString("en")} entities · ` +
      `${about.num_facts.toLocaleString("en")} facts · ${about.model} in ${about.dimensions} dimensions`;
    part("ck-examples").show(about.examples);
    question.example = about.examples[0]?.query ?? "";
    state.mostAnswers = about.limits.top_k;
  } catch (error) {
    report("about", error, () => start(given));
    return;
  }
  // A slow server leaves time to type something else; that is not to be lost.
  if (question.text === given) openLink();
}

reading.show(null);
listen();
question.text = linked();
start(question.text); // as the field has it: line ends may differ

// The page: what happens when. Components announce, this module asks the server and shows.

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

/** Runs `work(signal)`; a later run of the same kind makes the earlier one irrelevant. */
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

function forget(...kinds) {
  for (const kind of kinds) turns[kind]?.abort();
  settle(...kinds);
}

/** What failed and is still to be done, by kind: one notice for all, one button that tries all again. */
const failures = new Map();

function report(kind, error, retry) {
  if (!(error instanceof api.ApiError)) throw error;
  // What cannot be explained was an answer all the same: the text is not what is wrong.
  if (kind !== "explain" && ABOUT_THE_TEXT.has(error.kind)) {
    if (kind === "ask") state.refused = { text: state.asked, error };
    question.showError(error);
    settle(kind);
    return;
  }
  failures.set(kind, { error, retry });
  notice.show(error);
}

function settle(...kinds) {
  for (const kind of kinds) failures.delete(kind);
  const [left] = failures.values();
  if (left) notice.show(left.error);
  else notice.clear();
}

function showParsed(parsed, text) {
  settle("parse");
  state.drawn = text;
  // A text that can be read and drawn may be refused all the same, such as one with many branches.
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

function startOver() {
  question.text = "";
  understand("");
  forgetAnswers();
}

function startAfresh() {
  startOver();
  remember("");
}

/** A tree takes the place of the text that was drawn, never of what has been typed since. */
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

/** Say what is seen elsewhere on the page to those who do not see it. */
function tell(text) {
  part("#news").textContent = text;
}

/** Name the page by its question, so that tabs, bookmarks and the way back can be told apart. */
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

/** Put a question into the address, so that it can be linked to and gone back to. */
function remember(text) {
  if (text === linked()) return;
  history.pushState(null, "", text === "" ? location.pathname : `#q=${encodeURIComponent(text)}`);
}

/** The question in the address; all that follows `#q=`, for who writes one by hand writes `&` as it is. */
function linked() {
  const [, text] = location.hash.match(/^#q=(.*)$/s) ?? [null, ""];
  try {
    return decodeURIComponent(text.replaceAll(/%(?![\da-f]{2})/gi, "%25")).trim();
  } catch {
    return text.trim(); // bytes that are no text
  }
}

/** Whether the text was answered, and no later one has taken its place. */
async function ask(text, { topK = Math.min(PAGE_OF_ANSWERS, state.mostAnswers) } = {}) {
  if (text === "") {
    remember("");
    forgetAnswers();
    return false;
  }
  Object.assign(state, { asked: text, refused: null, topK });
  remember(text);
  entitle(text);
  forget("explain");
  hideDetails();
  answers.wait();
  try {
    const body = { query: text, top_k: topK, only: state.only };
    const response = await latest("ask", (signal) => api.ask(body, signal));
    if (!response) return false;
    settle("ask");
    if (question.text === text) question.showError(null); // not what was typed meanwhile
    answers.show(response, { mayHaveMore: response.answers.length === topK && topK < state.mostAnswers });
    return true;
  } catch (error) {
    answers.clear();
    report("ask", error, () => ask(text, { topK }));
    return false;
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

/** Ask what somebody wrote or chose; on a narrow screen its answers stand below the drawing. */
async function askAndLook(text) {
  if (!(await askAndUnderstand(text))) return;
  const [drawing, card] = [part(".graph-card"), part(".answers-card")];
  if (card.offsetTop >= drawing.offsetTop + drawing.offsetHeight) bringIntoView(card, "start");
}

/** Show the card first: what is drawn in it takes the room that it has. */
function showWhy(answer, fill) {
  const [why] = details;
  part("#explanation-title").replaceChildren("Why ", html("bdi", {}, answer.label));
  why.hidden = false;
  fill();
  bringIntoView(why, "nearest");
}

/** Say that reasons are looked for; most are there before anybody would read that. */
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
    // One after the other: a server, or a process of it, may take a single one at a time.
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
  document.addEventListener("answers-more", () =>
    ask(state.asked, { topK: Math.min(state.topK * 3, state.mostAnswers) }),
  );
  document.addEventListener("answers-filtered", ({ detail }) => {
    state.only = detail.only;
    if (state.asked) ask(state.asked);
  });
  document.addEventListener("retry", () => {
    const undone = [...failures.values()];
    forget(...failures.keys());
    for (const { retry } of undone) retry();
  });
  // Followed as a link it would take the place of the question in the address.
  part(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    part("#answers-title").focus();
  });
  window.addEventListener("popstate", openLink); // an address that was edited, back, forward
}

function openLink() {
  const text = linked();
  if (text === state.asked) return;
  if (text === "") {
    startOver();
    return;
  }
  question.text = text;
  askAndUnderstand(text);
}

async function start() {
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
    report("about", error, start);
    return;
  }
  openLink();
}

reading.show(null);
listen();
start();

// <ck-answers>: the ranked answers. Known and predicted answers differ in icon, word and border, not
// only in colour.

import { announce, html, svg } from "./dom.js";
import { failureText } from "./notice.js";

const FILTERS = [
  ["", "all"],
  ["known", "known"],
  ["predicted", "predicted"],
];

const percent = (value) =>
  value >= 0.995 && value < 1 ? "> 99 %" : value < 0.005 && value > 0 ? "< 1 %" : `${Math.round(value * 100)} %`;

class Answers extends HTMLElement {
  connectedCallback() {
    this.only = "";
    this.filters = html(
      "fieldset",
      { class: "filters", hidden: true },
      html("legend", { class: "visually-hidden" }, "Which answers"),
      FILTERS.map(([value, text]) =>
        html(
          "label",
          {},
          html("input", {
            type: "radio",
            name: "only",
            value,
            checked: value === "",
            onchange: () => {
              this.only = value;
              announce(this, "answers-filtered", { only: value || null });
            },
          }),
          html("span", {}, text),
        ),
      ),
    );
    this.summary = html("p", { class: "summary", role: "status" });
    this.key = html("details", { class: "key", hidden: true }, html("summary", {}, "How to read the answers"));
    this.list = html("ol", { class: "answers" });
    this.failure = html("div", { role: "status" });
    this.more = html("button", {
      type: "button",
      class: "more",
      hidden: true,
      onclick: () => announce(this, "answers-more", {}),
    });
    this.replaceChildren(this.filters, this.summary, this.key, this.list, this.failure, this.more);
    this.clear();
  }

  clear() {
    this.rest();
    this.list.replaceChildren();
    this.filters.hidden = true;
    this.key.hidden = true;
    this.more.hidden = true;
    this.summary.textContent = "Answers appear here, best first.";
  }

  /** Say that answers are being looked for; the list still has those to the previous question. */
  wait() {
    this.rest();
    this.fade();
    this.more.inert = true;
    this.summary.textContent = "Looking…";
  }

  /** Say that more answers to the same question are being looked for. */
  waitForMore() {
    this.rest();
    this.fade();
    this.more.textContent = "Looking…";
  }

  /** Keep the answers after more of them could not be had; the button, and its focus, tries again. */
  keep() {
    this.rest();
    this.more.textContent = "Try again";
  }

  /** Say why more answers could not be had, at the button that tries again. */
  showFailure(error) {
    this.keep();
    this.failure.replaceChildren(html("div", { class: "notice" }, failureText(error)));
    this.more.scrollIntoView({ block: "nearest" });
  }

  fade() {
    this.classList.add("is-waiting");
    this.list.inert = true;
  }

  /** End the waiting, and forget an earlier failure. */
  rest() {
    this.classList.remove("is-waiting");
    this.list.inert = false;
    this.failure.replaceChildren();
    this.more.inert = false;
    this.more.textContent = "Show more";
  }

  /** Show a response of /api/ask, and a way to get more where there may be more. */
  show(response, { mayHaveMore }) {
    this.rest();
    this.filters.hidden = false;
    this.summary.textContent = summarise(response, this.only);
    this.explainSigns(response);
    const labels = response.answers.map((answer) => answer.label);
    const first = document.activeElement === this.more ? this.list.children.length : -1;
    const shared = new Set(labels.filter((label, place) => labels.indexOf(label) !== place));
    this.list.replaceChildren(
      ...response.answers.map((answer) => this.row(answer, shared.has(answer.label))),
    );
    // After "Show more" by the keyboard, the focus goes to the first new answer.
    this.list.children[first]?.querySelector("button").focus({ preventScroll: true });
    this.more.hidden = !mayHaveMore;
  }

  /** Explain the words and numbers that occur in a response. */
  explainSigns({ answers, estimated_count, num_contradicted }) {
    this.key.hidden = answers.length === 0;
    if (answers.length === 0) return;
    const signs = [
      ["known", "follows from the facts of the graph"],
      ["predicted", "the model’s guess; no fact says so"],
      answers[0].probability === null
        ? ["number", "the model’s score: the higher, the surer"]
        : ["%", "how likely the answer is right; below 100 % where a missing fact could undo what is known"],
      ["order", "by the model’s score alone: what is known need not come first"],
      num_contradicted > 0 ? ["ruled out", "what facts speak against; it is not listed"] : null,
      estimated_count === null
        ? null
        : ["if any is missing", "how many answers there are likely to be if the facts lack some of them"],
    ];
    this.key.querySelector("dl")?.remove();
    this.key.append(
      html(
        "dl",
        {},
        signs.filter(Boolean).flatMap(([sign, words]) => [html("dt", {}, sign), html("dd", {}, words)]),
      ),
    );
  }

  /** Mark the answer that is being explained. */
  choose(name) {
    for (const button of this.list.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.name === name));
    }
  }

  /** The row of an answer, with its name if another answer shares its label. */
  row(answer, shared) {
    const kind = answer.known ? "known" : "predicted";
    const title = answer.known ? "follows from the facts of the graph" : "the model's guess";
    const sure = answer.probability;
    return html(
      "li",
      { class: `answer is-${kind}` },
      html(
        "button",
        {
          type: "button",
          "data-name": answer.name,
          "aria-pressed": "false",
          onclick: () => announce(this, "answer-chosen", { answer }),
        },
        html("span", { class: "rank" }, String(answer.rank)),
        html(
          "span",
          { class: "answer-name", dir: "auto", title: answer.label === answer.name ? null : answer.name },
          shared ? `${answer.label} (${answer.name})` : answer.label,
        ),
        html("span", { class: `badge badge-${kind}`, title }, badge(kind), kind),
        html(
          "span",
          { class: "sureness", title: `score ${answer.score.toFixed(2)}` },
          sure === null ? answer.score.toFixed(1) : percent(sure),
        ),
        sure === null ? null : bar(sure),
      ),
    );
  }
}

/** The icon of a kind of answer: a check for known, a star for predicted. */
function badge(kind) {
  const path =
    kind === "known"
      ? "M2.5 7.5 L5.5 10.5 L11.5 3.5"
      : "M7 1.5 L8.4 5.6 L12.5 7 L8.4 8.4 L7 12.5 L5.6 8.4 L1.5 7 L5.6 5.6 Z";
  return svg("svg", { class: "sign", viewBox: "0 0 14 14", width: 12, height: 12, "aria-hidden": "true" }, svg("path", { d: path }));
}

function bar(probability) {
  return svg(
    "svg",
    { class: "bar", viewBox: "0 0 100 3", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "bar-ground", width: 100, height: 3 }),
    svg("rect", { class: "bar-value", width: Math.max(0.5, probability * 100), height: 3 }),
  );
}

function summarise(response, only) {
  if (response.answers.length === 0) return only ? `No ${only} answer.` : "Nothing can answer this question, whatever facts are missing.";
  const known = `${response.num_known} known`;
  const out = response.num_contradicted > 0 ? `${response.num_contradicted} ruled out` : null;
  const inAll =
    response.estimated_count === null
      ? null
      : `about ${Math.max(1, Math.round(response.estimated_count))} if any is missing`;
  const took = `${Math.max(1, Math.round(response.seconds * 1000))} ms`;
  return [known, out, inAll, took].filter(Boolean).join(" · ");
}

customElements.define("ck-answers", Answers);

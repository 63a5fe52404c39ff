// <ck-explanation>: the path that leads to an answer, each step a fact of the graph or a guess.

import { drawTree } from "./diagram.js";
import { html } from "./dom.js";

const KINDS = {
  fact: ["✓", "fact", "is in the graph"],
  guess: ["≈", "guess", "the model predicts it"],
  absent: ["✓", "nothing against", "no fact says otherwise"],
  contradicted: ["✗", "contradicted", "a fact says otherwise"],
};
const readable = (text) => text.replaceAll("_", " ");

class Explanation extends HTMLElement {
  connectedCallback() {
    this.witness = null;
    this.isUnfolded = false;
    new ResizeObserver(() => this.draw()).observe(this);
  }

  /** Say that reasons are being looked for. */
  wait() {
    this.rememberFold();
    this.witness = null;
    this.replaceChildren(html("p", { class: "empty" }, "Looking for reasons…"));
  }

  /** Remember whether "What each step found" is open, for the next answer. */
  rememberFold() {
    this.isUnfolded = this.querySelector("details")?.open ?? this.isUnfolded;
  }

  /** Show a response of /api/explain about one answer. */
  show(response) {
    this.rememberFold();
    this.witness = response.witnesses[0] ?? null;
    this.variables = response.variables;
    this.explained = response.explained;
    if (this.witness === null) {
      this.replaceChildren(html("p", { class: "empty" }, "There is no path to explain."));
      return;
    }
    this.canvas = html("div", { class: "canvas" });
    this.drawnRoom = -1;
    const weakest = this.weakest();
    const steps = this.witness.parts.map((part) => this.part(part, part === weakest));
    this.replaceChildren(this.verdict(), this.canvas, html("ol", { class: "steps" }, steps));
    if (this.explained) {
      const note = `Explained without parts that change no answer: ${this.explained}.`;
      this.firstChild.after(html("p", { class: "verdict" }, note));
    }
    const others = this.alternatives();
    if (others !== null) this.append(others);
    this.draw();
  }

  draw() {
    if (!this.canvas || this.witness === null || this.drawnRoom === this.canvas.clientWidth) return;
    this.drawnRoom = this.canvas.clientWidth;
    if (this.witness.edges.length === 0) return;
    const { answer } = this.witness;
    const root = {
      text: answer.label,
      shape: "pill",
      tone: "answer",
      children: this.below("answer"),
    };
    this.canvas.replaceChildren(
      drawTree(root, { room: this.drawnRoom, label: `Path to ${answer.label}` }),
    );
  }

  /** The edges that end in a variable, as children of its node. */
  below(variable) {
    return this.witness.edges
      .filter((edge) => edge.tail_variable === variable)
      .map((edge) => ({
        text: edge.head.label,
        shape: "pill",
        tone: edge.head_variable === null ? "entity" : "middle",
        title: `${edge.head.label} ${readable(edge.relation_label)} ${edge.tail.label}: ${edge.kind}`,
        edge: {
          text: `${KINDS[edge.kind][0]} ${readable(edge.relation_label).replace(/^\^/, "← ")}`,
          tone: edge.kind,
        },
        children: edge.head_variable === null ? [] : this.below(edge.head_variable),
      }));
  }

  verdict() {
    const { witness } = this;
    const guesses = witness.parts.filter((part) => part.kind === "guess").length;
    const against = witness.parts.filter((part) => part.kind === "contradicted").length;
    const name = html("strong", { dir: "auto" }, witness.answer.label);
    if (witness.facts_only) return html("p", { class: "verdict" }, name, " follows from facts alone.");
    if (against > 0) return html("p", { class: "verdict" }, "The graph’s facts speak against ", name, ".");
    const many = guesses === 1 ? "one guess" : `${guesses} guesses`;
    const rest = witness.parts.some((part) => part.kind === "fact") ? "; the rest are facts" : "";
    return html("p", { class: "verdict" }, name, ` needs ${many}${rest}.`);
  }

  /**
   * The weakest part, to be marked; null if nothing is guessed or contradicted. The same part of a
   * question may occur twice; then it is the first with this kind and score.
   */
  weakest() {
    const { parts, weakest, facts_only } = this.witness;
    if (weakest === null || facts_only) return null;
    return parts.find((part) => ["query", "kind", "score"].every((key) => part[key] === weakest[key]));
  }

  part(part, isWeakest) {
    const [sign, word, title] = KINDS[part.kind];
    return html(
      "li",
      { class: `step step-${part.kind}` },
      html("span", { class: "step-sign", title }, sign, " ", word),
      html("span", { class: "step-words" }, part.reading),
      isWeakest ? html("span", { class: "weakest" }, "weakest step") : null,
    );
  }

  /** The best entities for each variable of the question. */
  alternatives() {
    const rows = this.variables
      .filter((variable) => variable.candidates.length > 0)
      .map((variable) =>
        html(
          "li",
          {},
          html("span", { class: "variable-words" }, variable.reading),
          html(
            "span",
            { class: "candidates" },
            variable.candidates.flatMap((each, index) => [
              index > 0 ? ", " : null,
              html("bdi", {}, each.label),
            ]),
          ),
        ),
      );
    if (rows.length === 0) return null;
    return html(
      "details",
      { class: "alternatives", open: this.isUnfolded },
      html("summary", {}, "What each step found"),
      html("ul", {}, rows),
    );
  }
}

customElements.define("ck-explanation", Explanation);

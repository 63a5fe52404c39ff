// <ck-question>: the text of the question, completed while it is typed, and the Ask button.

import { Completion } from "./completion.js";
import { announce, html, isComposing } from "./dom.js";
import { entitiesLike, relationsLike } from "./names.js";

const BARE = /\^?[\p{L}\p{M}\p{N}_\-/:#@$%+~]*$/u; // what needs no quotes
const SPARQL = /^\s*(PREFIX|BASE|SELECT|ASK)\s+[^\s.&|∧∨]/i; // entities may be called so too

/** Where a quotation that is still open at the end of `text` begins; -1 when none is. */
function openQuote(text) {
  let start = -1;
  for (let place = 0; place < text.length; place += 1) {
    if (start >= 0 && text[place] === "\\") place += 1;
    else if (start >= 0 && text[place] === text[start]) start = -1;
    else if (start < 0 && (text[place] === '"' || text[place] === "'")) start = place;
  }
  return start;
}

/** Where the word at the cursor starts, what it says, and whether a relation is expected. */
export function wordAt(text, cursor) {
  const before = text.slice(0, cursor);
  const quote = openQuote(before);
  const start = quote >= 0 ? quote : cursor - BARE.exec(before)[0].length;
  const left = before.slice(0, start).trimEnd();
  return {
    start,
    word: before.slice(quote >= 0 ? start + 1 : start),
    expects: left.endsWith(".") ? "relation" : left.startsWith("?") ? "any" : "entity",
  };
}

const ADDRESS = /^(https?:\/\/|urn:(?!conekg:))[^\0-\x20<>"{}|\\^`]+$/;

/**
 * An IRI that SPARQL reads as a name: a web address as it is, all else in the namespace of names,
 * where any name can stand (`query/iri.py`).
 */
export const asIri = (name) => (ADDRESS.test(name) ? name : `urn:conekg:${encodeURIComponent(name)}`);

/** What to do next; of routes, which the server names to programs, a reader has no use. */
function remedyOf({ kind, hint }) {
  if (hint && !hint.startsWith("GET ")) return hint;
  return kind === "unknown_name" ? "Type how a name begins: a list shows the names that there are." : "";
}

class Question extends HTMLElement {
  /** A question that can be asked here, shown while the field is empty. */
  set example(text) {
    this.field.placeholder = text;
  }

  connectedCallback() {
    this.field = html("textarea", {
      id: "question",
      rows: 1,
      "aria-describedby": "question-error",
      enterkeyhint: "go",
    });
    this.completion = new Completion(this.field, {
      suggest: (signal) => this.suggest(signal),
      choose: (item) => this.insert(item),
    });
    // Always on the page: a change of what was hidden is not read out. Politely, for it comes
    // while the text is being typed.
    this.error = html("div", { id: "question-error", "aria-live": "polite", "aria-atomic": "true" });
    const form = html(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          this.submit();
        },
      },
      html("label", { for: "question" }, "Ask the graph"),
      html(
        "div",
        { class: "question-line" },
        html("div", { class: "field" }, this.field, this.completion.list),
        html("button", { class: "primary", type: "submit" }, "Ask"),
      ),
    );
    this.field.addEventListener("input", () => {
      this.grow();
      announce(this, "question-typed", { text: this.text });
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
      event.preventDefault();
      this.submit();
    });
    window.addEventListener("resize", () => this.grow()); // a phone that is turned: other lines
    this.replaceChildren(form, this.error);
  }

  get text() {
    return this.field.value.trim();
  }

  set text(value) {
    this.field.value = value;
    this.completion.close();
    this.grow();
  }

  submit() {
    this.completion.close();
    if (this.text === "") this.field.focus(); // what is shown there is an example, not a question
    announce(this, "question-asked", { text: this.text });
  }

  grow() {
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight + 2}px`;
  }

  async suggest(signal) {
    const { word, expects } = wordAt(this.field.value, this.field.selectionStart);
    if (SPARQL.test(this.field.value)) return [];
    const found = await this.candidates(word, expects, signal);
    // A word that is complete already needs no list over the rest of the page.
    return found.some((item) => item.name === word) ? [] : found;
  }

  async candidates(word, expects, signal) {
    if (expects === "relation") return relationsLike(word);
    if (word === "" || word === "^") return [];
    const entities = await entitiesLike(word, signal);
    return expects === "any" ? [...(await relationsLike(word, 6)), ...entities] : entities;
  }

  insert(item) {
    const cursor = this.field.selectionStart;
    const { start } = wordAt(this.field.value, cursor);
    this.field.setRangeText(item.text, start, cursor, "end");
    this.field.focus();
    this.grow();
    announce(this, "question-typed", { text: this.text });
  }

  /** Show what is wrong with the text, where, and what may have been meant. */
  showError(error) {
    this.field.setAttribute("aria-invalid", String(error !== null));
    if (error === null) {
      this.error.replaceChildren();
      return;
    }
    const parts = [html("p", { class: "error-message" }, error.message)];
    if (error.span) parts.push(this.excerpt(error.span));
    if (error.suggestions.length > 0) {
      const choices = error.suggestions.map((name, index) =>
        html(
          "button",
          { type: "button", class: "chip", onclick: () => this.correct(error.span, name) },
          error.about[index] ? `${name} (${error.about[index]})` : name,
        ),
      );
      parts.push(html("p", { class: "suggestions" }, "Did you mean ", choices));
    } else {
      parts.push(html("p", { class: "hint" }, remedyOf(error)));
    }
    this.error.replaceChildren(html("div", { class: "question-error" }, parts));
  }

  /** Where a span of the server lies in the field: it counts characters, from the first one. */
  place([start, stop]) {
    const sent = [...this.text];
    const lead = this.field.value.length - this.field.value.trimStart().length;
    return [start, stop].map((count) => lead + sent.slice(0, count).join("").length);
  }

  excerpt([start, stop]) {
    const text = this.field.value;
    const [from, to] = this.place([start, Math.max(stop, start + 1)]);
    return html(
      "p",
      { class: "excerpt", "aria-hidden": "true" },
      text.slice(Math.max(0, from - 40), from),
      html("mark", {}, text.slice(from, to) || " "),
      text.slice(to, to + 40),
    );
  }

  correct(span, name) {
    const bare = /^[\p{L}\p{M}\p{N}_\-/#@$%+~][\p{L}\p{M}\p{N}_\-/:#@$%+~]*$/u.test(name);
    let written = bare ? name : `"${name.replaceAll(/["\\]/g, "\\$&")}"`;
    const before = span ? this.field.value.slice(...this.place(span)) : "";
    if (/^[<:]/.test(before)) written = `<${asIri(name)}>`; // in SPARQL
    if (span) this.field.setRangeText(written, ...this.place(span), "end");
    else this.field.value = written;
    this.field.focus();
    this.grow();
    announce(this, "question-typed", { text: this.text });
  }
}

customElements.define("ck-question", Question);

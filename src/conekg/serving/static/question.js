// <ck-question>: the field for the question, with completion and error messages, and the Ask button.

import { Completion } from "./completion.js";
import { announce, html, isComposing } from "./dom.js";
import { entitiesLike, relationsLike } from "./names.js";

const BARE = /\^?[\p{L}\p{M}\p{N}_\-/:#@$%+~]*$/u; // a name that needs no quotes, at the end
const REST = /^\^?[\p{L}\p{M}\p{N}_\-/:#@$%+~]*/u; // the rest of such a name after the cursor
const SPARQL = /^\s*(PREFIX|BASE|SELECT|ASK)\s+[^\s.&|∧∨]/i; // not an entity named, say, "Select"

/** The index of a quote that is still open at the end of `text`; -1 if there is none. */
function openQuote(text) {
  let start = -1;
  for (let place = 0; place < text.length; place += 1) {
    if (start >= 0 && text[place] === "\\") place += 1;
    else if (start >= 0 && text[place] === text[start]) start = -1;
    else if (start < 0 && (text[place] === '"' || text[place] === "'")) start = place;
  }
  return start;
}

/** The index of the quote that closes the one at `start`. */
function closingQuote(text, start) {
  let place = start + 1;
  while (text[place] !== text[start]) place += text[place] === "\\" ? 2 : 1;
  return place;
}

/** Where the word at the cursor stops; a quote that is never closed may be of a word yet to be typed. */
function stopOf(text, cursor, quote) {
  if (quote < 0) return cursor + REST.exec(text.slice(cursor))[0].length;
  return openQuote(text) < 0 ? closingQuote(text, quote) + 1 : cursor;
}

/**
 * Where the word at the cursor starts and stops, its text up to the cursor, and whether an entity or a
 * relation is expected.
 */
export function wordAt(text, cursor) {
  const before = text.slice(0, cursor);
  const quote = openQuote(before);
  const start = quote >= 0 ? quote : cursor - BARE.exec(before)[0].length;
  const left = before.slice(0, start).trimEnd();
  return {
    start,
    stop: stopOf(text, cursor, quote),
    word: before.slice(quote >= 0 ? start + 1 : start),
    expects: left.endsWith(".") ? "relation" : left.startsWith("?") ? "any" : "entity",
  };
}

const ADDRESS = /^(https?:\/\/|urn:(?!conekg:))[^\0-\x20<>"{}|\\^`]+$/;

/**
 * A name as an IRI for SPARQL: a web address as it is, any other name in the namespace
 * `urn:conekg:` (see `query/iri.py`).
 */
export const asIri = (name) => (ADDRESS.test(name) ? name : `urn:conekg:${encodeURIComponent(name)}`);

/**
 * What to do next, for a reader of the page. Some hints of the server are for programs, in whole or in
 * part: they name routes or, for a query of too many branches, a field of the request.
 */
function remedyOf({ kind, hint }) {
  if (hint && !hint.startsWith("GET ")) return hint.replace(/, or send ".*/, "");
  if (kind === "query_too_large") return "ask for its parts one at a time";
  return kind === "unknown_name" ? "Type how a name begins: a list shows the names that there are." : "";
}

class Question extends HTMLElement {
  /** Show an example question while the field is empty. */
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
    // Never hidden, as screen readers do not announce changes of hidden elements. "polite", as
    // errors come while the user types.
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
    window.addEventListener("resize", () => this.grow()); // lines wrap elsewhere on a turned phone
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
    if (this.text === "") this.field.focus(); // the example that is shown is only a placeholder
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
    // Show no list over the page when the word is already a complete name.
    return found.some((item) => item.name === word) ? [] : found;
  }

  async candidates(word, expects, signal) {
    if (expects === "relation") return relationsLike(word);
    if (word === "" || word === "^") return [];
    const entities = await entitiesLike(word, signal);
    return expects === "any" ? [...(await relationsLike(word, 6)), ...entities] : entities;
  }

  insert(item) {
    const { start, stop } = wordAt(this.field.value, this.field.selectionStart);
    this.field.setRangeText(item.text, start, stop, "end");
    this.field.focus();
    this.grow();
    announce(this, "question-typed", { text: this.text });
  }

  /** Show what is wrong with the text, where, and suggestions; null clears the message. */
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

  /**
   * A span of the server as indices into the field. The server counts whole characters (code points)
   * and does not see leading spaces.
   */
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

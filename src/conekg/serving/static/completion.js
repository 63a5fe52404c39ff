// A field with a list of suggestions below it, following the ARIA combobox pattern. Its owner decides
// what is suggested and what happens when a suggestion is chosen.

import { html, isComposing } from "./dom.js";

let lists = 0;

export class Completion {
  /**
   * `field` is an input or textarea. `suggest(signal)` resolves to items
   * { title, note, ... }; `choose(item)` takes the chosen one.
   */
  constructor(field, { suggest, choose }) {
    this.field = field;
    this.suggest = suggest;
    this.choose = choose;
    this.items = [];
    this.active = -1;
    this.pending = null;
    /** Resolves when the suggestions for the current text are shown. */
    this.settled = Promise.resolve();
    /** Whether the list still has the suggestions for an earlier text. */
    this.isStale = false;
    this.list = html("ul", {
      class: "completions",
      id: `completions-${(lists += 1)}`,
      role: "listbox",
      "aria-label": "Suggestions",
      tabindex: "-1", // else Tab would stop at a list that scrolls, which then closes
      hidden: true,
    });
    field.setAttribute("role", "combobox");
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-expanded", "false");
    field.setAttribute("aria-controls", this.list.id);
    field.setAttribute("autocomplete", "off");
    field.setAttribute("autocapitalize", "off");
    field.setAttribute("spellcheck", "false");
    field.addEventListener("input", () => this.refresh());
    field.addEventListener("blur", () => this.close());
    field.addEventListener("keydown", (event) => this.key(event));
    // Keep the focus in the field while the pointer chooses an option.
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
  }

  get isOpen() {
    return !this.list.hidden;
  }

  /** Fetch the suggestions for the current text and show them. */
  refresh() {
    this.pending?.abort();
    this.pending = new AbortController();
    this.isStale = true;
    this.settled = this.replace(this.pending);
  }

  async replace(turn) {
    let items;
    try {
      items = await this.suggest(turn.signal);
    } catch {
      // Show no suggestions; if the server is gone, asking the question reports it.
      items = [];
    }
    if (turn.signal.aborted) return;
    this.isStale = false;
    if (document.activeElement === this.field) this.show(items);
  }

  show(items) {
    // Keep an option highlighted if the new list has it too.
    const marked = this.items[this.active];
    this.items = items;
    this.active = -1;
    this.list.replaceChildren(
      ...items.map((item, index) =>
        html(
          "li",
          {
            id: `${this.list.id}-${index}`,
            role: "option",
            "aria-selected": "false",
            onclick: () => this.take(index),
          },
          html("span", { class: "completion-title", dir: "auto" }, item.title),
          item.note ? html("span", { class: "completion-note" }, item.note) : null,
        ),
      ),
    );
    this.list.hidden = items.length === 0;
    this.field.setAttribute("aria-expanded", String(items.length > 0));
    this.field.removeAttribute("aria-activedescendant");
    if (marked === undefined) return;
    const again = items.findIndex((item) => item.title === marked.title && item.note === marked.note);
    if (again >= 0) this.highlight(again);
  }

  close() {
    this.pending?.abort();
    this.isStale = false;
    this.show([]);
  }

  move(by) {
    const count = this.items.length;
    this.highlight((this.active + by + count + (this.active < 0 && by < 0 ? 1 : 0)) % count);
  }

  highlight(index) {
    this.list.children[this.active]?.setAttribute("aria-selected", "false");
    this.active = index;
    const option = this.list.children[index];
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", option.id);
  }

  take(index) {
    const item = this.items[index];
    this.close();
    this.choose(item);
  }

  key(event) {
    if (!this.isOpen || isComposing(event)) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.close();
    } else if (this.isStale) {
      return; // the list belongs to an earlier text: do not take an option of it
    } else if (event.key === "Tab" && !event.shiftKey && this.active >= 0) {
      event.preventDefault();
      this.take(this.active);
    } else if (event.key === "Enter" && this.active >= 0) {
      event.preventDefault();
      event.stopImmediatePropagation();
      this.take(this.active);
    }
  }
}

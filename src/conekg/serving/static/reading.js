// <ck-reading>: the question in plain words and as a formula. <ck-examples>: where to start.

import { announce, html } from "./dom.js";

class Reading extends HTMLElement {
  /** Show how the question was understood; null invites to ask. */
  show(parsed) {
    this.inert = false;
    if (parsed === null) {
      this.replaceChildren(
        html(
          "p",
          { class: "words invitation" },
          "Type a question, put one together by clicking, or start from an example.",
        ),
      );
      return;
    }
    const open = this.querySelector("details")?.open ?? false; // stays so while a text is typed
    this.replaceChildren(
      html("p", { class: "words" }, parsed.reading),
      html(
        "details",
        { class: "notations", open },
        html("summary", {}, "as logic"),
        html("p", {}, html("code", {}, parsed.formula)),
        html(
          "p",
          { class: "quiet" },
          `shape ${parsed.shape} · ${parsed.branches} ${parsed.branches === 1 ? "branch" : "branches"}`,
        ),
      ),
    );
  }

  /** The words of an earlier text step back; an invitation is of no text. */
  hold() {
    this.inert = this.querySelector(".notations") !== null;
  }
}

class Examples extends HTMLElement {
  /** Offer questions: { query, reading }. */
  show(examples) {
    if (examples.length === 0) {
      this.replaceChildren();
      return;
    }
    this.replaceChildren(
      html("h2", { class: "examples-title" }, "Try"),
      html(
        "ul",
        { class: "examples" },
        examples.map((example) =>
          html(
            "li",
            {},
            html(
              "button",
              {
                type: "button",
                class: "example",
                title: example.query,
                onclick: () => announce(this, "question-chosen", { text: example.query }),
              },
              example.reading,
            ),
          ),
        ),
      ),
    );
  }
}

customElements.define("ck-reading", Reading);
customElements.define("ck-examples", Examples);

// <ck-reading>: the question in plain words and as a formula. <ck-examples>: example questions.

import { announce, html } from "./dom.js";

class Reading extends HTMLElement {
  /** Show how the question was understood; if null, an invitation to ask one. */
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
    const open = this.querySelector("details")?.open ?? false; // keep it open while the user types
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

  /** Fade the words, as they belong to an earlier text; an invitation stays. */
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

// <ck-notice>: a failure that is not about the question's text, and what to do about it.

import { useKey } from "./api.js";
import { announce, html } from "./dom.js";

/** What went wrong, and what to do about it, as a paragraph. */
export function failureText(error) {
  return html("p", {}, html("strong", {}, error.message), error.hint ? ` ${error.hint}` : "");
}

class Notice extends HTMLElement {
  connectedCallback() {
    this.setAttribute("role", "alert");
  }

  clear() {
    this.className = "";
    this.replaceChildren();
  }

  /** Show a failure with a button to try again; for a missing key, a field for it. */
  show(error) {
    this.className = `notice notice-${error.kind}`;
    if (error.kind === "missing_key") {
      this.askForKey(error);
      return;
    }
    this.replaceChildren(
      failureText(error),
      html("button", { type: "button", onclick: () => announce(this, "retry", {}) }, "Try again"),
    );
  }

  askForKey(error) {
    const input = html("input", { type: "password", id: "api-key", autocomplete: "off" });
    this.replaceChildren(
      html(
        "form",
        {
          onsubmit: (event) => {
            event.preventDefault();
            useKey(input.value.trim());
            announce(this, "retry", {});
          },
        },
        html("label", { for: "api-key" }, html("strong", {}, error.message)),
        input,
        html("button", { type: "submit" }, "Use this key"),
      ),
    );
    input.focus(); // nothing else works without the key
  }
}

customElements.define("ck-notice", Notice);

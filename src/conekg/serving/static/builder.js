// <ck-builder>: the question as a drawing to click: choose a step, then follow a relation, join the
// step with another set, or negate it. The drawing shows the typed question. While the text cannot be
// parsed, the builder takes no clicks, because a change to the drawing replaces the text.

import { Completion } from "./completion.js";
import { drawTree } from "./diagram.js";
import { announce, html, isComposing } from "./dom.js";
import { entitiesLike, relationsLike, writtenOut } from "./names.js";
import * as trees from "./tree.js";

const WORDS = { and: "and", or: "or", not: "not", all: "everything" };
const TITLES = {
  hop: "Follow a relation from the chosen step",
  and: "Keep only what is also in another set",
  or: "Add what is in another set",
  not: "Turn the chosen step into everything else",
  remove: "Take the chosen step away",
};
const readable = (text) => (text ?? "").replaceAll("_", " ");

class Builder extends HTMLElement {
  connectedCallback() {
    this.tree = null;
    this.path = [];
    this.canvas = html("div", { class: "canvas" });
    this.advice = html("p", { class: "advice" }, "Choose a step in the drawing, then change it:");
    this.tools = html("div", { class: "tools", role: "group", "aria-label": "Change the chosen step" });
    this.panel = html("div", { class: "panel", hidden: true });
    this.work = html("div", {}, this.canvas, this.advice, this.tools, this.panel);
    this.held = html(
      "p",
      { class: "held", hidden: true },
      "The text above cannot be read yet. Correct it, or ",
      html("button", { type: "button", class: "chip", onclick: () => this.startAfresh() }, "Start afresh"),
    );
    this.replaceChildren(this.held, this.work);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.show(null);
  }

  /** Show a query tree; if null, an invitation to start one. */
  show(tree) {
    const tool = this.tools.contains(document.activeElement) ? document.activeElement.dataset.tool : null;
    this.tree = tree;
    this.hold(false);
    if (!this.hasNode(this.path)) this.path = [];
    this.closePanel();
    this.draw();
    this.drawTools();
    if (tool !== null) this.focusTool(tool);
  }

  /** Take no clicks while the text is not what is drawn; with false, take them again. */
  hold(isHeld = true) {
    this.held.hidden = !isHeld;
    this.work.inert = isHeld;
  }

  startAfresh() {
    announce(this, "question-dropped", {});
    this.focusTool("start");
  }

  /** Focus the tool of that name again after redrawing, or the first tool if it is gone. */
  focusTool(name) {
    (this.tools.querySelector(`[data-tool=${name}]`) ?? this.tools.firstChild)?.focus();
  }

  /** Whether the tree has a node at this path. */
  hasNode(path) {
    let node = this.tree;
    for (const index of path) node = node?.operands[index];
    return Boolean(node);
  }

  draw() {
    const room = this.canvas.clientWidth;
    if (room === this.drawnRoom && this.tree === this.drawnTree && this.path === this.drawnPath) return;
    const focused = document.activeElement?.closest?.("[data-path]") && this.contains(document.activeElement);
    [this.drawnRoom, this.drawnTree, this.drawnPath] = [room, this.tree, this.path];
    if (this.tree === null) {
      this.canvas.replaceChildren(
        html("p", { class: "empty" }, "Start from an entity, then add one step after another."),
      );
      return;
    }
    const goal = {
      text: "?",
      shape: "goal",
      tone: "goal",
      title: "the answers",
      children: [this.node(this.tree, [])],
    };
    this.canvas.replaceChildren(drawTree(goal, { room, label: "Computation graph of the question" }));
    this.reveal();
    if (focused) this.canvas.querySelector(".is-selected")?.focus();
  }

  /** Scroll a drawing that is too wide sideways until the chosen step is visible. */
  reveal() {
    const chosen = this.canvas.querySelector(".is-selected .mark");
    const [mark, place] = [chosen, this.canvas].map((each) => each.getBoundingClientRect());
    if (mark.left >= place.left && mark.right <= place.right) return;
    this.canvas.scrollLeft += (mark.left + mark.right - place.left - place.right) / 2;
  }

  node(tree, path) {
    const text = tree.kind === "entity" ? tree.label : WORDS[tree.kind];
    const named = readable(tree.label ?? tree.name).replace(/^\^/, "");
    const titles = {
      entity: `entity ${tree.label}`,
      hop: `what ${named} reaches${tree.name?.startsWith("^") ? ", backwards" : ""}`,
    };
    return {
      text: tree.kind === "hop" ? "" : text,
      shape: { entity: "pill", all: "pill", hop: "dot" }[tree.kind] ?? "word",
      tone: tree.kind === "hop" ? "plain" : tree.kind,
      title: titles[tree.kind] ?? WORDS[tree.kind],
      path: path.join("."),
      selected: path.join() === this.path.join(),
      onselect: () => this.select(path),
      children: tree.operands.map((operand, index) => {
        const below = this.node(operand, [...path, index]);
        const edge =
          tree.kind === "hop"
            ? { text: `${tree.name.startsWith("^") ? "← " : ""}${named}`, tone: "plain" }
            : { text: "", tone: tree.kind === "not" ? "not" : "plain" };
        return { ...below, edge };
      }),
    };
  }

  select(path) {
    this.path = path;
    this.closePanel();
    this.draw();
    this.drawTools();
    this.canvas.querySelector(".is-selected")?.focus();
  }

  drawTools() {
    const tool = (name, sign, text, run) =>
      html(
        "button",
        { type: "button", class: "tool", "data-tool": name, title: TITLES[name], onclick: run },
        html("span", { class: "tool-sign", "aria-hidden": "true" }, sign),
        text,
      );
    this.advice.hidden = this.tree === null;
    if (this.tree === null) {
      this.tools.replaceChildren(tool("start", "●", "Start from an entity", () => this.openStart()));
      return;
    }
    const chosen = trees.nodeAt(this.tree, this.path);
    this.tools.replaceChildren(
      tool("hop", "→", "hop", () => this.openHop()),
      tool("and", "∧", "and", () => this.openJoin("and")),
      tool("or", "∨", "or", () => this.openJoin("or")),
      tool("not", "¬", chosen.kind === "not" ? "undo not" : "not", () =>
        this.change(trees.edit(this.tree, this.path, trees.toggleNot)),
      ),
      tool("remove", "×", "remove", () => this.removeChosen()),
    );
  }

  change(tree, path = this.path) {
    this.path = path;
    this.closePanel();
    announce(this, "question-built", { tree });
  }

  removeChosen() {
    const tree = trees.remove(this.tree, this.path);
    this.change(tree, this.path.slice(0, -1));
  }

  closePanel() {
    const focused = this.panel.contains(document.activeElement);
    this.panel.hidden = true;
    this.panel.replaceChildren();
    if (focused) this.focusTool(this.opener);
  }

  /** Open a small form below the drawing for a tool; `fields` are made by `picker`. */
  openPanel(opener, title, fields, extra, done) {
    this.opener = opener;
    const submit = async (event) => {
      event.preventDefault();
      for (const field of fields) {
        if (!(await field.isSettled())) {
          field.complain();
          return;
        }
      }
      if (fields[0].input.isConnected) done(); // not if the form was cancelled in the meantime
    };
    this.panel.replaceChildren(
      html(
        "form",
        {
          onsubmit: submit,
          onkeydown: (event) => {
            if (event.key === "Escape" && !isComposing(event)) this.closePanel();
          },
        },
        html("p", { class: "panel-title" }, title),
        fields.map((field) => field.row),
        extra,
        html(
          "div",
          { class: "panel-actions" },
          html("button", { type: "submit", class: "primary" }, "Add"),
          html("button", { type: "button", onclick: () => this.closePanel() }, "Cancel"),
        ),
      ),
    );
    this.panel.hidden = false;
    fields[0].input.focus();
    if (fields[0].lists) fields[0].completion.refresh();
  }

  openStart() {
    const start = picker("Entity", "entity");
    this.openPanel("start", "Start from", [start], null, () =>
      this.change(trees.entity(start.chosen.name, start.chosen.label), []),
    );
  }

  openHop() {
    const relation = picker("Relation", "relation");
    this.openPanel("hop", "Follow a relation from the chosen step", [relation], null, () =>
      this.change(
        trees.edit(this.tree, this.path, (node) =>
          trees.hop(node, relation.chosen.name, relation.chosen.label),
        ),
      ),
    );
  }

  openJoin(kind) {
    const start = picker("Entity", "entity");
    const relation = picker("Relation", "relation", true);
    const negate = html("input", { type: "checkbox", id: "join-not" });
    const extra = html("label", { class: "check", for: "join-not" }, negate, " not: leave these out");
    const title = kind === "and" ? "Keep only what is also in" : "Add what is in";
    this.openPanel(kind, title, [start, relation], extra, () => {
      let other = trees.entity(start.chosen.name, start.chosen.label);
      if (relation.chosen) other = trees.hop(other, relation.chosen.name, relation.chosen.label);
      if (negate.checked) other = trees.not(other);
      this.change(trees.edit(this.tree, this.path, (node) => trees.join(kind, node, other)));
    });
  }
}

/** The suggestion with exactly this name, or the only one written like this; null if there is none. */
async function named(typed, suggest) {
  const items = await Promise.resolve(suggest()).catch(() => []); // the server may not answer
  const same = (text) => text.toLowerCase() === typed.toLowerCase();
  const titled = items.filter((item) => same(item.title) || same(writtenOut(item)));
  return items.find((item) => item.name === typed) ?? (titled.length === 1 ? titled[0] : null);
}

/** A labelled field that completes names of one kind and remembers which one was chosen. */
function picker(label, kind, optional = false) {
  const id = `pick-${kind}`;
  const input = html("input", { id, type: "text", placeholder: optional ? "optional" : "" });
  const state = { input, optional, chosen: null, lists: kind === "relation" };
  const suggest = (signal) =>
    kind === "relation"
      ? relationsLike(input.value.trim())
      : input.value.trim()
        ? entitiesLike(input.value.trim(), signal)
        : [];
  state.completion = new Completion(input, {
    suggest,
    choose: (item) => {
      state.chosen = item;
      input.value = writtenOut(item);
      input.setCustomValidity("");
    },
  });
  /** Whether the field is valid: a name was chosen or typed in full, or an optional field is empty. */
  state.isSettled = async () => {
    const typed = input.value.trim();
    if (state.chosen === null && typed !== "") state.chosen = await named(typed, suggest);
    return state.chosen !== null || (optional && typed === "");
  };
  state.complain = () => {
    input.setCustomValidity("Choose a name from the list.");
    input.reportValidity();
    state.completion.refresh();
  };
  if (kind === "relation") input.addEventListener("focus", () => state.completion.refresh());
  input.addEventListener("input", () => {
    state.chosen = null;
    input.setCustomValidity("");
  });
  // Enter takes the first completion of the typed word, once the list belongs to that word.
  input.addEventListener("keydown", async (event) => {
    if (event.key !== "Enter" || isComposing(event)) return;
    if (state.chosen || !state.completion.isOpen) return;
    event.preventDefault();
    const { completion } = state;
    const typed = input.value;
    while (completion.isStale) await completion.settled;
    if (input.value === typed && completion.isOpen) completion.take(Math.max(completion.active, 0));
  });
  state.row = html(
    "div",
    { class: "picker" },
    html("label", { for: id }, label),
    html("div", { class: "field" }, input, state.completion.list),
  );
  return state;
}

customElements.define("ck-builder", Builder);

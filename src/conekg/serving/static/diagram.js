// Draws a tree in SVG, from its leaves to its root. It knows nothing of queries: the builder and the
// explanation both pass plain nodes:
// { text, shape: "pill" | "dot" | "word" | "goal", tone, edge: { text, tone }, title, children,
//   onselect, selected }.

import { svg } from "./dom.js";

const ROOT = 16; // the root font size that all lengths below are for; drawings scale with the actual one
const TYPE = 13.6; // the font size in diagrams.css
const NODE_TEXT = 176; // maximal width of a node's text
const EDGE_TEXT = 190; // maximal width of an edge's text
const NODE_HEIGHT = 32;
const LEVEL_GAP = 34;
const SIBLING_GAP = 22;
const BEND = 28; // length of the curved end of an edge
const MARGIN = 8;
const SQUEEZE = 1.15; // a drawing up to this much too wide is shrunk rather than laid out downwards

const pen = document.createElement("canvas").getContext("2d");

const rootStyle = () => getComputedStyle(document.documentElement);

/** The width of a text in pixels, measured, as letters differ too much between scripts and fonts. */
function widthOf(text, weight = 400) {
  pen.font = `${weight} ${TYPE}px ${rootStyle().getPropertyValue("--sans")}`;
  return pen.measureText(text).width;
}

/** The text, cut to a width of `most` pixels and ended with … if it is wider. */
function shorten(text, most, weight) {
  if (widthOf(text, weight) <= most) return text;
  const letters = [...text.slice(0, 200)];
  while (letters.length > 0 && widthOf(`${letters.join("")}…`, weight) > most) letters.pop();
  return `${letters.join("")}…`;
}

/** The text of a node as it is drawn, and the width of the node. */
function measureNode(node) {
  if (node.shape === "dot") return { text: "", width: 18 };
  if (node.shape === "goal") return { text: node.text, width: 34 };
  const weight = node.tone === "answer" ? 600 : 400;
  const text = shorten(node.text, NODE_TEXT, weight);
  return { text, width: Math.max(34, widthOf(text, weight) + 24) };
}

/** The text of the edge to a node's parent as it is drawn, and its width. */
function measureEdge(node) {
  if (!node.edge?.text) return { edgeText: "", edgeWidth: 0 };
  const edgeText = shorten(node.edge.text, EDGE_TEXT);
  return { edgeText, edgeWidth: widthOf(edgeText) + 14 };
}

/** The layout item of a node; `out` collects those of its whole tree, children before parents. */
function flatten(node, depth = 0, parent = null, out = []) {
  const item = { node, depth, parent, ...measureNode(node), ...measureEdge(node) };
  const children = (node.children ?? []).map((child) => flatten(child, depth + 1, item, out));
  item.children = children;
  out.push(item);
  return item;
}

/** Left to right: one column per depth, one row per leaf. */
function layoutAcross(items) {
  const depth = Math.max(...items.map((item) => item.depth));
  const wide = Array(depth + 1).fill(0);
  const gap = Array(depth + 1).fill(LEVEL_GAP);
  for (const item of items) {
    wide[item.depth] = Math.max(wide[item.depth], item.width);
    gap[item.depth] = Math.max(gap[item.depth], item.edgeWidth + BEND + 8);
  }
  const middle = Array(depth + 1).fill(0);
  let x = MARGIN;
  for (let level = depth; level >= 0; level -= 1) {
    middle[level] = x + wide[level] / 2;
    x += wide[level] + (level > 0 ? gap[level] : 0);
  }
  let y = MARGIN + NODE_HEIGHT / 2;
  for (const item of items) {
    item.x = middle[item.depth];
    if (item.children.length === 0) {
      item.y = y;
      y += NODE_HEIGHT + SIBLING_GAP;
    } else {
      item.y = (item.children[0].y + item.children.at(-1).y) / 2;
    }
  }
  return { width: x + MARGIN, height: y - SIBLING_GAP - NODE_HEIGHT / 2 + MARGIN };
}

/** Top to bottom, for narrow screens: one row per depth, one column per leaf. */
function layoutDown(items, root) {
  const depth = Math.max(...items.map((item) => item.depth));
  const row = Array(depth + 1).fill(MARGIN + NODE_HEIGHT / 2);
  for (let level = depth - 1; level >= 0; level -= 1) {
    const labelled = items.some((item) => item.depth === level + 1 && item.edgeWidth > 0);
    row[level] = row[level + 1] + NODE_HEIGHT + (labelled ? BEND + 24 : BEND);
  }
  const place = (item, left) => {
    const own = Math.max(item.width, item.edgeWidth);
    item.y = row[item.depth];
    if (item.children.length === 0) {
      item.x = left + own / 2;
      return left + own;
    }
    let right = left;
    for (const child of item.children) right = place(child, right) + SIBLING_GAP;
    right -= SIBLING_GAP;
    item.x = (item.children[0].x + item.children.at(-1).x) / 2;
    const lack = own - (right - left);
    if (lack > 0) shift(item, lack / 2);
    return Math.max(right, left + own);
  };
  const width = place(root, MARGIN);
  return { width: width + MARGIN, height: row[0] + NODE_HEIGHT / 2 + MARGIN };
}

function shift(item, by) {
  item.x += by;
  item.children.forEach((child) => shift(child, by));
}

/** The path of an edge (straight along its label, then curved into the parent), its arrow and label. */
function edgePath(item, down) {
  const { parent } = item;
  const inset = (each) => (each.node.shape === "dot" ? 9 : each.node.shape === "goal" ? 16 : NODE_HEIGHT / 2);
  if (down) {
    const [ax, ay] = [item.x, item.y + inset(item)];
    const [bx, by] = [parent.x, parent.y - inset(parent) - 4];
    const turn = ax === bx ? by : by - BEND;
    const bend = BEND * 0.75;
    return {
      path: `M${ax} ${ay} L${ax} ${turn} C${ax} ${turn + bend} ${bx} ${by - bend} ${bx} ${by}`,
      arrow: `M${bx - 4} ${by - 3} l4 6 l4 -6`,
      label: [ax, item.y + NODE_HEIGHT / 2 + 17],
    };
  }
  const [ax, ay] = [item.x + item.width / 2, item.y];
  const [bx, by] = [parent.x - parent.width / 2 - 4, parent.y];
  const turn = ay === by ? bx : bx - BEND;
  const bend = BEND * 0.75;
  return {
    path: `M${ax} ${ay} L${turn} ${ay} C${turn + bend} ${ay} ${bx - bend} ${by} ${bx} ${by}`,
    arrow: `M${bx - 3} ${by - 4} l6 4 l-6 4`,
    label: [(ax + turn) / 2 - (ay === by ? 3 : 0), ay - 7],
  };
}

function drawEdge(item, down) {
  const { path, arrow, label } = edgePath(item, down);
  const tone = item.node.edge?.tone ?? "plain";
  const parts = [
    svg("path", { class: `edge edge-${tone}`, d: path }),
    svg("path", { class: `arrow arrow-${tone}`, d: arrow }),
  ];
  if (item.edgeText) {
    const [x, y] = label;
    const words = svg("text", { class: `edge-label label-${tone}`, x, y }, item.edgeText);
    if (item.edgeText !== item.node.edge.text) words.append(svg("title", {}, item.node.edge.text));
    parts.push(words);
  }
  return parts;
}

function drawNode(item) {
  const { node } = item;
  const interactive = Boolean(node.onselect);
  const group = svg("g", {
    class: `node node-${node.shape} tone-${node.tone ?? "plain"}${node.selected ? " is-selected" : ""}`,
    transform: `translate(${item.x} ${item.y})`,
    role: interactive ? "button" : null,
    tabindex: interactive ? "0" : null,
    "aria-pressed": interactive ? String(Boolean(node.selected)) : null,
    "aria-label": interactive ? node.title : null,
    "data-path": node.path,
    onclick: node.onselect,
    onkeydown: interactive
      ? (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          node.onselect();
        }
      : null,
  });
  if (node.title) group.append(svg("title", {}, node.title));
  // An invisible circle, large enough for a thumb to hit.
  if (interactive) group.append(svg("circle", { class: "reach", r: 22 }));
  const height = NODE_HEIGHT;
  if (node.shape === "dot") group.append(svg("circle", { class: "mark", r: 8 }));
  else if (node.shape === "goal") group.append(svg("circle", { class: "mark", r: 15 }));
  else {
    group.append(
      svg("rect", {
        class: "mark",
        x: -item.width / 2,
        y: -height / 2,
        width: item.width,
        height,
        rx: node.shape === "word" ? 6 : height / 2,
      }),
    );
  }
  if (item.text) group.append(svg("text", { class: "node-label", y: 5 }, item.text));
  return group;
}

/** The drawing of a tree, fitted into `room` pixels if possible; `label` is for screen readers. */
export function drawTree(tree, { room: space, label }) {
  const scale = parseFloat(rootStyle().fontSize) / ROOT;
  const room = space / scale;
  const items = [];
  const root = flatten(tree, 0, null, items);
  let down = false;
  let box = layoutAcross(items);
  if (box.width > room * SQUEEZE) {
    const across = box;
    box = layoutDown(items, root);
    down = true;
    if (box.width > across.width) {
      box = layoutAcross(items);
      down = false;
    }
  }
  const edges = items.filter((item) => item.parent).flatMap((item) => drawEdge(item, down));
  const drawing = svg(
    "svg",
    {
      class: box.width <= room * SQUEEZE ? "diagram diagram-fits" : "diagram",
      viewBox: `0 0 ${box.width} ${box.height}`,
      width: box.width * scale,
      height: box.height * scale,
      role: "group",
      "aria-label": label,
    },
    svg("g", { class: "edges" }, edges),
    svg("g", { class: "nodes" }, items.map(drawNode)),
  );
  return drawing;
}

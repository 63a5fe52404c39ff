// Edits of a query tree. Trees are never changed in place: each edit makes a new one.
// A node is { kind, name, label, operands }; a path is the list of operand indices to it.

export const entity = (name, label = name) => ({ kind: "entity", name, label, operands: [] });
export const hop = (operand, name, label = name) => ({ kind: "hop", name, label, operands: [operand] });
export const not = (operand) => ({ kind: "not", operands: [operand] });

/** The node at a path. */
export function nodeAt(tree, path) {
  return path.reduce((node, index) => node.operands[index], tree);
}

/** The tree with the node at `path` replaced by `change(node)`. */
export function edit(tree, path, change) {
  if (path.length === 0) return change(tree);
  const [first, ...rest] = path;
  const operands = tree.operands.map((each, index) =>
    index === first ? edit(each, rest, change) : each,
  );
  return { ...tree, operands };
}

/** `node` joined with `other` by "and" or "or"; a node of that kind gets one more operand. */
export function join(kind, node, other) {
  if (node.kind === kind) return { ...node, operands: [...node.operands, other] };
  return { kind, operands: [node, other] };
}

/** `node` negated; for a negation, its operand. */
export function toggleNot(node) {
  return node.kind === "not" ? node.operands[0] : not(node);
}

/**
 * The tree without the node at `path`. A hop or a negation is replaced by its operand; an operand
 * of "and" or "or" is dropped; with an entity, all hops and negations above it go as well, up to the
 * next "and" or "or". Null if nothing is left.
 */
export function remove(tree, path) {
  const node = nodeAt(tree, path);
  if (node.kind === "hop" || node.kind === "not") return edit(tree, path, () => node.operands[0]);
  let place = path;
  while (place.length > 0) {
    const above = nodeAt(tree, place.slice(0, -1));
    if (above.operands.length > 1) {
      const index = place.at(-1);
      return edit(tree, place.slice(0, -1), (parent) => {
        const operands = parent.operands.filter((_, each) => each !== index);
        return operands.length === 1 ? operands[0] : { ...parent, operands };
      });
    }
    place = place.slice(0, -1);
  }
  return null;
}

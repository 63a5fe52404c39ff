// Completion of names: entities are asked from the server by prefix, relations are fetched once.

import * as api from "./api.js";

let known = null;

/** All relations, fetched once, each in both directions: { name, label, text }. */
async function allRelations() {
  known ??= api.relations().then(({ relations }) =>
    relations.flatMap((each) => [
      { name: each.name, label: each.label, text: each.text },
      { name: each.inverse, label: each.inverse_label, text: `^${each.text}` },
    ]),
  );
  try {
    return await known;
  } catch (error) {
    known = null;
    throw error;
  }
}

const plain = (text) => text.toLowerCase().replaceAll("_", " ");

const BACKWARDS = /^(\^|← ?)/;

/** How a suggestion is written in a field of its own, where the direction of a relation matters too. */
export const writtenOut = (item) => (item.note === "backwards" ? `← ${item.title}` : item.title);

/**
 * At most `most` relations that contain `typed`, after `^` or `←` only those that are followed
 * backwards; those that begin with it come first.
 */
export async function relationsLike(typed, most = 40) {
  const backwards = BACKWARDS.test(typed);
  const wanted = plain(typed.replace(BACKWARDS, ""));
  const items = (await allRelations())
    .filter((each) => !backwards || each.name.startsWith("^"))
    .map((each) => {
      const places = [each.name, each.label].map((text) =>
        plain(text).replace(/^\^/, "").indexOf(wanted),
      );
      const found = places.filter((place) => place >= 0);
      return { each, place: found.length > 0 ? Math.min(...found) : -1 };
    })
    .filter(({ place }) => place >= 0);
  const rank = ({ each, place }) => (place > 0 ? 2 : 0) + (each.name.startsWith("^") ? 1 : 0);
  items.sort((a, b) => rank(a) - rank(b));
  return items.slice(0, most).map(({ each }) => ({
    ...each,
    title: each.label.replaceAll("_", " ").replace(/^\^/, ""),
    note: each.name.startsWith("^") ? "backwards" : "relation",
  }));
}

/** Entities whose name or label begins with `typed`. */
export async function entitiesLike(typed, signal) {
  const { entities } = await api.entities(typed, signal);
  return entities.map((each) => ({
    ...each,
    title: each.label,
    note: each.label === each.name ? "entity" : each.name,
  }));
}

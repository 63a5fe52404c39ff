// The server's routes as functions. Every failure is an ApiError with the server's error object.

const KEY = "conekg-api-key";

/** A failed request; `kind` is from the server, or "unreachable" if there was no response. */
export class ApiError extends Error {
  constructor(body) {
    super(body.message);
    Object.assign(this, { kind: body.kind, hint: body.hint ?? null, span: body.span ?? null });
    this.suggestions = body.suggestions ?? [];
    this.about = body.about ?? [];
  }
}

let ownKey = null;

/** Keep an API key for this browser tab; where the browser forbids storage, until it is reloaded. */
export function useKey(key) {
  ownKey = key;
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    // The page will ask for the key again after it is reloaded.
  }
}

function keyInUse() {
  try {
    return sessionStorage.getItem(KEY) ?? ownKey;
  } catch {
    return ownKey;
  }
}

/** A text for a header: one character for each byte of its UTF-8; `fetch` refuses any above 255. */
const inHeader = (text) => String.fromCharCode(...new TextEncoder().encode(text));

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

async function request(path, { body, signal } = {}) {
  const headers = { Accept: "application/json" };
  const key = keyInUse();
  if (key) headers.Authorization = `Bearer ${inHeader(key)}`;
  if (body) headers["Content-Type"] = "application/json";
  let response, text;
  try {
    response = await fetch(path, {
      method: body ? "POST" : "GET",
      headers,
      body: body && JSON.stringify(body),
      signal,
    });
    text = await response.text(); // fails too, if the server stops in the middle of an answer
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError({
      kind: "unreachable",
      message: "The server does not answer.",
      hint: "It may have been stopped. Your question is kept.",
    });
  }
  const value = parsed(text);
  if (response.ok && value !== null) return value;
  throw new ApiError(
    value?.error ?? { kind: "internal", message: `The server answered ${response.status}.` },
  );
}

export const about = () => request("api/about");
export const relations = () => request("api/relations");
export const parse = (body, signal) => request("api/parse", { body, signal });
export const ask = (body, signal) => request("api/ask", { body, signal });
export const explain = (body, signal) => request("api/explain", { body, signal });
export const cones = (body, signal) => request("api/cones", { body, signal });

/** Entities whose name or label begins with `prefix`, as many as the server returns by default. */
export function entities(prefix, signal) {
  const search = new URLSearchParams({ prefix });
  return request(`api/entities?${search}`, { signal });
}

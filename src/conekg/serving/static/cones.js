// <ck-cones>: pictures of some of the query's sector-cones, each with the answer's angle.

import { html, svg } from "./dom.js";

const RADIUS = 40;

/** The point at an angle on a circle; the y axis of a screen points down. */
const at = (angle, radius) => [radius * Math.cos(angle), -radius * Math.sin(angle)];
const spot = (angle, radius) => at(angle, radius).map((value) => value.toFixed(2)).join(" ");

/** The outline of a sector around `axis` with half opening `half`. */
export function sector(axis, half, radius = RADIUS) {
  if (half >= Math.PI - 1e-3) {
    return `M${-radius} 0 A${radius} ${radius} 0 1 1 ${radius} 0 A${radius} ${radius} 0 1 1 ${-radius} 0 Z`;
  }
  const wide = 2 * half > Math.PI ? 1 : 0;
  const from = spot(axis - half, radius);
  const to = spot(axis + half, radius);
  return `M0 0 L${from} A${radius} ${radius} 0 ${wide} 0 ${to} Z`;
}

class Cones extends HTMLElement {
  /** Show a response of /api/cones; `member` is what /api/explain says of the answer. */
  show(response, member) {
    if (response.cones.length === 0) {
      this.replaceChildren(html("p", { class: "empty" }, "This model has no cones to draw."));
      return;
    }
    const share = `${response.inside} of ${response.dimensions}`;
    this.replaceChildren(
      html(
        "p",
        { class: "verdict" },
        html("strong", { dir: "auto" }, response.answer.label),
        ` lies inside ${share} cones: ${member ? "enough" : "too few"} to count as a member of the set. `,
        `Here are ${response.cones.length} of them, from narrow to wide.`,
      ),
      html("div", { class: "cones" }, response.cones.map((cone) => this.figure(cone, response.answer))),
      html(
        "p",
        { class: "legend" },
        html("span", { class: "key-cone" }, "the question's cone"),
        html("span", { class: "key-axis" }, "its axis"),
        html("span", { class: "key-inside" }, "the answer, inside"),
        html("span", { class: "key-outside" }, "outside"),
      ),
    );
  }

  figure(cone, answer) {
    const word = cone.inside ? "inside" : "outside";
    const [x, y] = at(cone.entity_angle, RADIUS);
    const mark = cone.inside
      ? svg("circle", { class: "entity-mark", cx: x, cy: y, r: 4.5 })
      : svg("rect", { class: "entity-mark", x: x - 4, y: y - 4, width: 8, height: 8 });
    const picture = svg(
      "svg",
      { viewBox: "-50 -50 100 100", role: "img", "aria-label": `dimension ${cone.dimension}: ${answer.label} ${word}` },
      svg("circle", { class: "dial", r: RADIUS }),
      svg("path", { class: "cone", d: sector(cone.axis, cone.half_aperture) }),
      svg("path", { class: "axis", d: `M0 0 L${spot(cone.axis, RADIUS)}` }),
      svg("path", { class: "ray", d: `M0 0 L${x.toFixed(2)} ${y.toFixed(2)}` }),
      mark,
    );
    return html(
      "figure",
      { class: `cone-figure is-${word}` },
      picture,
      html("figcaption", {}, html("span", { class: "quiet" }, `${cone.dimension}`), ` ${word}`),
    );
  }
}

customElements.define("ck-cones", Cones);

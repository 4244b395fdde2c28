// All traces of one episode, one under the other, with one cursor through them.

const HEIGHTS = { events: 20, c: 150, reward: 110, gate: 56, axis: 16 };

class Traces {
  constructor(container, episode, styles, { hasCredit, largest }) {
    this.width = container.clientWidth;
    this.episode = episode;
    this.styles = styles;
    this.count = episode.reward.length;
    this.bands = new Bands(this.count, this.width);
    this.cursors = [];
    container.replaceChildren(
      ...this.events(),
      ...(hasCredit ? this.contributions(largest) : []),
      ...this.rewards(),
      ...(episode.gate ? this.gate() : []),
      this.axis(),
      ...(hasCredit ? [] : [htmlElement("p", { class: "note" }, "This agent has no synthetic returns, so there is no credit to show.")]),
    );
  }

  pointAt(step) {
    for (const cursor of this.cursors) cursor.setAttribute("x", this.bands.start(step));
  }

  // A heading with its key and a chart under it.
  panel(title, keys, height, label, draw) {
    const heading = htmlElement("p", { class: "panel-title" }, title);
    for (const [name, kind, text] of keys) {
      const key = htmlElement("span");
      key.append(htmlElement("i", { class: `swatch ${kind} ${name}`, "aria-hidden": "true" }), text);
      heading.append(key);
    }
    const svg = svgElement("svg", { width: this.width, height, viewBox: `0 0 ${this.width} ${height}`, role: "img", "aria-label": label });
    draw(svg);
    this.cursors.push(svgElement("rect", { class: "cursor", x: 0, y: 0, width: Math.max(2, this.bands.size), height }, svg));
    return [heading, svg];
  }

  events() {
    const happened = Object.entries(this.episode.events);
    const told = happened.map(([name, steps]) => `${this.styles[name].label} at ${steps.join(", ")}`).join("; ");
    const [heading, svg] = this.panel("events", [], HEIGHTS.events, `Events: ${told || "none"}`, (svg) => {
      svgElement("line", { class: "rule", x1: this.bands.left, x2: this.bands.start(this.count), y1: 10, y2: 10 }, svg);
      drawEvents(svg, this.bands, this.episode, this.styles);
    });
    for (const [name] of happened) {
      const key = htmlElement("span");
      key.append(smallMark(this.styles[name]), this.styles[name].label);
      heading.append(key);
    }
    return [heading, svg];
  }

  contributions(largest) {
    const { c } = this.episode;
    const peak = c.indexOf(Math.max(...known(c)));
    const keys = [["positive", "block", "adds to later reward"], ["negative", "block", "takes from it"]];
    const label = `Synthetic return over ${this.count} states; the largest, ${shortNumber(c[peak])}, is at step ${peak}`;
    const strip = htmlElement("canvas", { class: "strip", role: "img", "aria-label": "Heat strip of the synthetic return" });
    drawStrip(strip, c, largest);
    strip.style.marginLeft = `${this.bands.left}px`;
    strip.style.width = `${this.bands.size * this.count}px`;
    return [...this.panel("synthetic return c", keys, HEIGHTS.c, label, (svg) => {
      const y = frameOf(svg, this.bands, HEIGHTS.c, range(c), this.episode);
      drawDrops(svg, this.bands, HEIGHTS.c, this.episode, this.styles);
      drawBars(svg, this.bands, y, c, "positive", "negative");
    }), strip];
  }

  rewards() {
    const { reward, predicted, baseline, total } = this.episode;
    const keys = [["reward", "block", "reward"]];
    if (predicted) keys.push(["predicted", "", "predicted"]);
    if (baseline) keys.push(["baseline", "dashed", "baseline"]);
    const label = `Reward over ${this.count} states, in sum ${shortNumber(total)}`;
    return this.panel("reward", keys, HEIGHTS.reward, label, (svg) => {
      const y = frameOf(svg, this.bands, HEIGHTS.reward, range(reward, predicted, baseline), this.episode);
      drawDrops(svg, this.bands, HEIGHTS.reward, this.episode, this.styles);
      drawBars(svg, this.bands, y, reward, "reward", "negative");
      if (baseline) drawLevels(svg, this.bands, y, baseline, "baseline");
      if (predicted) drawLevels(svg, this.bands, y, predicted, "predicted");
    });
  }

  gate() {
    return this.panel("gate", [], HEIGHTS.gate, `Gate over ${this.count} states, between 0 and 1`, (svg) => {
      const y = frameOf(svg, this.bands, HEIGHTS.gate, [0, 1], this.episode);
      drawBars(svg, this.bands, y, this.episode.gate, "gate", "gate");
    });
  }

  // The names of the phases where they fit, or what the axis is.
  axis() {
    const svg = svgElement("svg", { width: this.width, height: HEIGHTS.axis, "aria-hidden": "true" });
    const parts = phaseSpans(this.episode.phases, this.count);
    const labels = parts.length ? parts : [["step of the episode", 0, this.count]];
    for (const [name, start, end] of labels) {
      if ((end - start) * this.bands.size < name.length * 5.5) continue;
      const x = (this.bands.start(start) + this.bands.start(end)) / 2;
      svgElement("text", { x, y: 12, "text-anchor": "middle" }, svg).textContent = name;
    }
    return svg;
  }
}

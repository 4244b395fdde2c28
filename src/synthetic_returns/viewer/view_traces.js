// All traces of one episode, one under the other, with one cursor through them.

const HEIGHTS = { events: 20, credit: 150, lines: 110, gate: 56, action: 16, pairs: 220, axis: 16 };
const LINE_STYLES = 6; // in the style sheet

class Traces {
  constructor(container, episode, styles, scales) {
    this.width = container.clientWidth;
    this.episode = episode;
    this.styles = styles;
    this.scales = scales;
    this.count = episode.reward.length;
    this.bands = new Bands(this.count, this.width);
    this.cursors = [];
    this.rows = []; // that move with the cursor, in maps of pairs
    this.terms = new Map(episode.terms.map((term) => [term.name, term]));
    const lines = episode.terms.filter((term) => term.kind === "line" && term.name !== episode.credit);
    this.numbers = new Map(lines.map((term, number) => [term.name, number % LINE_STYLES]));
    container.replaceChildren(
      ...this.events(),
      ...(episode.strip ? this.credit() : []),
      ...episode.charts.flatMap((chart) => this.lines(chart)),
      ...this.others("gate", (term) => this.gate(term)),
      ...this.others("actions", (term) => this.actions(term)),
      ...this.others("pairs", (term) => this.pairs(term)),
      this.axis(),
      ...(episode.strip ? [] : [htmlElement("p", { class: "note" }, "This agent learned without credit, so there is none to show.")]),
    );
  }

  pointAt(step) {
    for (const cursor of this.cursors) cursor.setAttribute("x", this.bands.start(step));
    for (const [row, size] of this.rows) row.setAttribute("y", Math.floor((step * size) / this.count) * (HEIGHTS.pairs / size));
  }

  others(kind, draw) {
    const found = this.episode.terms.filter((term) => term.kind === kind && term.name !== this.episode.credit);
    return found.flatMap(draw);
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

  // What the agent is paid: as bars if it is a number for each state, else by its kind; and as a strip.
  credit() {
    const term = this.terms.get(this.episode.credit);
    const values = this.episode.strip;
    const strip = htmlElement("canvas", { class: "strip", role: "img", "aria-label": `Heat strip of the credit: ${this.episode.label}` });
    drawHeat(strip, [values], this.scales.largest);
    strip.style.marginLeft = `${this.bands.left}px`;
    strip.style.width = `${this.bands.size * this.count}px`;
    if (term.kind === "actions") return [...this.actions(term), strip];
    if (term.kind === "pairs") return [...this.pairs(term), strip];
    const peak = values.indexOf(Math.max(...known(values)));
    const keys = [["positive", "block", "gain"], ["negative", "block", "loss"]];
    const label = `Credit: ${this.episode.label} over ${this.count} states; the largest, ${shortNumber(values[peak])}, is at step ${peak}`;
    return [...this.panel(this.episode.label, keys, HEIGHTS.credit, label, (svg) => {
      const y = frameOf(svg, this.bands, HEIGHTS.credit, this.scales.credit, this.episode);
      drawDrops(svg, this.bands, HEIGHTS.credit, this.episode, this.styles);
      drawBars(svg, this.bands, y, values, "positive", "negative");
    }), strip];
  }

  // Lines that share a chart, over the rewards that they are about.
  lines({ title, bars, lines }) {
    const terms = lines.map((name) => this.terms.get(name));
    const keys = terms.map((term) => [`line-${this.numbers.get(term.name)}`, "", term.label]);
    if (bars && terms.length) keys.unshift(["reward", "block", title]);
    const label = [title, ...terms.map((term) => term.label)].join(", ");
    return this.panel(title, keys, HEIGHTS.lines, `Lines over ${this.count} states: ${label}`, (svg) => {
      const y = frameOf(svg, this.bands, HEIGHTS.lines, this.scales.charts.get(title), this.episode);
      drawDrops(svg, this.bands, HEIGHTS.lines, this.episode, this.styles);
      if (bars) drawBars(svg, this.bands, y, bars, "reward", "negative");
      for (const term of terms) drawLevels(svg, this.bands, y, term.values, `line-${this.numbers.get(term.name)}`);
    });
  }

  gate(term) {
    return this.panel(term.label, [], HEIGHTS.gate, `Gate: ${term.label} over ${this.count} states, between 0 and 1`, (svg) => {
      const y = frameOf(svg, this.bands, HEIGHTS.gate, [0, 1], this.episode);
      drawBars(svg, this.bands, y, term.values, "gate", "gate");
    });
  }

  // A row for each action.
  actions(term) {
    const rows = transposed(term.values);
    const height = HEIGHTS.action * rows.length;
    const keys = [["positive", "block", "gain"], ["negative", "block", "loss"]];
    return this.panel(term.label, keys, height, `Actions: ${term.label}, for ${rows.length} actions of ${this.count} states`, (svg) => {
      addHeat(svg, this.bands, rows, height, this.scales.heats.get(term.name));
      labelRows(svg, this.bands, height, rows.map((_, action) => String(action)));
    });
  }

  // A row for each state, which says what every state contributes to it; the row of this step is outlined.
  pairs(term) {
    const size = term.values.length;
    const keys = [["positive", "block", "gain"], ["negative", "block", "loss"]];
    return this.panel(term.label, keys, HEIGHTS.pairs, `Pairs: ${term.label}, of ${this.count} states in each of them`, (svg) => {
      addHeat(svg, this.bands, term.values, HEIGHTS.pairs, this.scales.heats.get(term.name));
      for (const [y, step] of [[10, 0], [HEIGHTS.pairs, this.count - 1]])
        svgElement("text", { x: this.bands.left - 6, y, "text-anchor": "end" }, svg).textContent = String(step);
      const height = Math.max(2, HEIGHTS.pairs / size);
      this.rows.push([svgElement("rect", { class: "row", x: this.bands.left, y: 0, width: this.bands.size * this.count, height }, svg), size]);
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

"use strict";
// Charts whose horizontal axis is the step of an episode. Each step is a band; all charts share them.

const MARGIN = { left: 46, right: 8 };
const MARK_SIZE = 5;

function svgElement(name, attributes = {}, parent = null) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
}

function htmlElement(name, attributes = {}, text = "") {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text; // never markup: names come from outside
  return element;
}

function shortNumber(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && size < 0.0001) return value.toExponential(0).replace("-", "−");
  const text = size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toPrecision(3);
  return String(Number(text)).replace("-", "−");
}

// The path of a mark around the origin.
function markPath(shape, r = MARK_SIZE) {
  switch (shape) {
    case "circle": return `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
    case "square": return `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`;
    case "triangle": return `M0 ${-r}L${r} ${r}H${-r}z`;
    case "cross": return `M${-r} ${-r}L${r} ${r}M${r} ${-r}L${-r} ${r}`;
    case "star": return `M0 ${-1.3 * r}L${0.4 * r} ${-0.4 * r}L${1.3 * r} 0L${0.4 * r} ${0.4 * r}L0 ${1.3 * r}L${-0.4 * r} ${0.4 * r}L${-1.3 * r} 0L${-0.4 * r} ${-0.4 * r}z`;
    default: return `M0 ${-1.2 * r}L${r} 0L0 ${1.2 * r}L${-r} 0z`;
  }
}

function mark(style, attributes = {}) {
  const width = style.shape === "cross" ? 2.25 : 0;
  const path = svgElement("path", { d: markPath(style.shape), class: "mark", "stroke-width": width, ...attributes });
  path.style.setProperty("--light", style.light);
  path.style.setProperty("--dark", style.dark);
  return path;
}

// A mark beside text.
function smallMark(style) {
  const picture = svgElement("svg", { viewBox: "-8 -8 16 16", class: "small-mark", "aria-hidden": "true" });
  picture.append(mark(style));
  return picture;
}

// Where the bands of n steps lie in a chart of this width.
class Bands {
  constructor(count, width) {
    this.count = count;
    this.left = MARGIN.left;
    this.size = Math.max(1, width - MARGIN.left - MARGIN.right) / count;
  }
  start(step) { return this.left + step * this.size; }
  middle(step) { return this.left + (step + 0.5) * this.size; }
  at(x) { return Math.min(this.count - 1, Math.max(0, Math.floor((x - this.left) / this.size))); }
}

function known(values) { return values.filter((value) => value !== null); }

// From the smallest to the largest of these values, and zero.
function range(...series) {
  let [low, high] = [0, 0];
  for (const value of series.filter(Boolean).flatMap(known)) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return high > low ? [low, high] : [0, 1];
}

// Name, first step and end of each phase that the episode reached.
function phaseSpans(phases, count) {
  return phases
    .map(([name, start], index) => [name, start, Math.min(count, index + 1 < phases.length ? phases[index + 1][1] : count)])
    .filter(([, start, end]) => start < end);
}

function frameOf(svg, bands, height, [low, high], episode) {
  const y = (value) => height - ((value - low) / (high - low)) * (height - 4) - 2;
  const right = bands.start(bands.count);
  phaseSpans(episode.phases, bands.count).forEach(([, start, end], index) => {
    if (index % 2 === 1) svgElement("rect", { class: "phase", x: bands.start(start), y: 0, width: (end - start) * bands.size, height }, svg);
  });
  const ticks = new Set([low, high, 0].filter((value) => value >= low && value <= high));
  let previous = null;
  for (const value of [...ticks].sort((a, b) => b - a)) {
    svgElement("line", { class: value === 0 ? "zero" : "rule", x1: bands.left, x2: right, y1: y(value), y2: y(value) }, svg);
    if (previous !== null && Math.abs(y(value) - previous) < 11) continue; // it would cover the label above
    previous = y(value);
    const label = svgElement("text", { x: bands.left - 6, y: y(value) + 4, "text-anchor": "end" }, svg);
    label.textContent = shortNumber(value);
  }
  return y;
}

function drawBars(svg, bands, y, values, above, below) {
  const gap = bands.size > 5 ? 1 : 0;
  const paths = { [above]: "", [below]: "" };
  values.forEach((value, step) => {
    if (!value) return;
    const top = Math.min(y(value), y(0));
    const height = Math.max(1, Math.abs(y(value) - y(0)));
    paths[value > 0 ? above : below] += `M${bands.start(step).toFixed(2)} ${top.toFixed(2)}h${Math.max(1, bands.size - gap).toFixed(2)}v${height.toFixed(2)}h${(-Math.max(1, bands.size - gap)).toFixed(2)}z`;
  });
  for (const [name, d] of Object.entries(paths)) if (d) svgElement("path", { class: name, d }, svg);
}

// A level for each step, joined where both are known.
function drawLevels(svg, bands, y, values, name) {
  let d = "";
  let pen = "M";
  values.forEach((value, step) => {
    if (value === null) { pen = "M"; return; }
    d += `${pen}${bands.start(step).toFixed(2)} ${y(value).toFixed(2)}H${bands.start(step + 1).toFixed(2)}`;
    pen = "L";
  });
  if (d) svgElement("path", { class: `line ${name}`, d }, svg);
}

// The marks of events in a row of their own; rare events also get a line through every chart.
function drawEvents(svg, bands, episode, styles) {
  for (const [name, steps] of Object.entries(episode.events)) {
    for (const step of steps) {
      const group = mark(styles[name], { transform: `translate(${bands.middle(step)} 10)`, "data-event": name, "data-step": step });
      const title = svgElement("title", {}, group);
      title.textContent = `${styles[name].label}, step ${step}`;
      svg.append(group);
    }
  }
}

function drawDrops(svg, bands, height, episode, styles) {
  for (const [name, steps] of Object.entries(episode.events)) {
    if (steps.length > 3) continue;
    for (const step of steps) {
      const line = svgElement("line", { class: "drop", x1: bands.middle(step), x2: bands.middle(step), y1: 0, y2: height }, svg);
      line.style.setProperty("--light", styles[name].light);
      line.style.setProperty("--dark", styles[name].dark);
    }
  }
}


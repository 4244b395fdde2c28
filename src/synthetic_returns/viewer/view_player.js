// The page: which episode and which step are shown, and everything that changes them.

const DATA = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const SCALES = commonScales(DATA.episodes);

const state = { episode: 0, step: 0, pinned: 0, timer: null };
const sheets = new Map(); // decoded pictures by episode
let traces = null;

const current = () => DATA.episodes[state.episode];
const playing = () => state.timer !== null;
const happenedAt = (episode, step) =>
  Object.entries(episode.events).filter(([, steps]) => steps.includes(step)).map(([name]) => name);

// --- the frame ---

function drawFrame() {
  const frames = current().frames;
  const canvas = find("frame");
  canvas.hidden = frames === null;
  find("no-frames").hidden = frames !== null;
  if (frames === null) return;
  let sheet = sheets.get(state.episode);
  if (!sheet) {
    sheet = new Image();
    sheets.set(state.episode, sheet);
    sheet.addEventListener("load", drawFrame);
    sheet.src = frames.source;
  }
  if (!sheet.complete || !sheet.naturalWidth) return;
  const scale = Math.max(1, Math.floor(770 / frames.width));
  const [width, height] = [frames.width * scale, frames.height * scale];
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  const x = (state.step % frames.columns) * frames.width;
  const y = Math.floor(state.step / frames.columns) * frames.height;
  context.drawImage(sheet, x, y, frames.width, frames.height, 0, 0, width, height);
  if (scale >= 16) { // cells large enough for lines between them
    context.strokeStyle = "rgba(128,128,128,0.45)";
    context.beginPath();
    for (let i = 1; i < frames.width; i++) { context.moveTo(i * scale, 0); context.lineTo(i * scale, height); }
    for (let i = 1; i < frames.height; i++) { context.moveTo(0, i * scale); context.lineTo(width, i * scale); }
    context.stroke();
  }
  canvas.dataset.step = state.step;
}

function describe() {
  const episode = current();
  const names = happenedAt(episode, state.step).map((name) => DATA.events[name].label);
  const phase = episode.phases.filter(([, start]) => start <= state.step).at(-1);
  const where = `step ${state.step} of ${episode.reward.length - 1}`;
  const caption = find("caption");
  caption.replaceChildren(htmlElement("b", {}, where));
  const rest = [phase ? phase[0] : "", ...names].filter(Boolean).join(" · ");
  if (rest) caption.append(` · ${rest}`);
  // While playing, nobody wants every step read out.
  caption.setAttribute("aria-live", playing() ? "off" : "polite");
  find("frame").setAttribute("aria-label", `Frame of ${where}${rest ? `, ${rest}` : ""}`);
  const scrub = find("scrub");
  scrub.value = state.step;
  scrub.setAttribute("aria-valuetext", `${where}${names.length ? `, ${names.join(", ")}` : ""}`);
  const said = episode.terms.filter((term) => term.kind !== "pairs").map((term) => [term.label, term.values[state.step]]);
  find("values").replaceChildren(...[["reward", episode.reward[state.step]], ...said].map(([name, value]) => {
    const cell = htmlElement("div");
    const text = Array.isArray(value) ? value.map(shortNumber).join("  ") : shortNumber(value);
    cell.append(htmlElement("dt", {}, name), htmlElement("dd", {}, text));
    return cell;
  }));
}

function show(step) {
  state.step = Math.min(current().reward.length - 1, Math.max(0, step));
  drawFrame();
  describe();
  traces.pointAt(state.step);
  if (DATA.bars) drawStateBars(find("bars"), DATA.bars, current().place ? current().place[state.step] : null);
  for (const button of find("happenings").querySelectorAll("button"))
    button.setAttribute("aria-current", String(Number(button.dataset.step) === state.step));
}

function goTo(step) {
  show(step);
  state.pinned = state.step;
}

// --- playing ---

function pause() {
  clearInterval(state.timer);
  state.timer = null;
  find("play").setAttribute("aria-label", "Play");
  describe();
}

function play() {
  if (state.step >= current().reward.length - 1) goTo(0);
  clearInterval(state.timer);
  state.timer = setInterval(() => {
    goTo(state.pinned + 1);
    if (state.step >= current().reward.length - 1) pause();
  }, 1000 / Number(find("speed").value));
  find("play").setAttribute("aria-label", "Pause");
}

function nextEvent() {
  const steps = Object.values(current().events).flat().sort((a, b) => a - b);
  if (steps.length) goTo(steps.find((step) => step > state.pinned) ?? steps[0]);
}

// --- traces and lists ---

function drawTraces() {
  traces = new Traces(find("charts"), current(), DATA.events, SCALES);
}

function listHappenings() {
  const sections = Object.entries(current().events).map(([name, steps]) => {
    const section = htmlElement("div", { class: "happening", role: "group", "aria-label": DATA.events[name].label });
    const heading = htmlElement("h3");
    heading.append(smallMark(DATA.events[name]), DATA.events[name].label, htmlElement("small", {}, DATA.events[name].meaning));
    section.append(heading);
    for (const step of steps) {
      const button = htmlElement("button", { type: "button", "data-step": step, "data-event": name, "aria-label": `${DATA.events[name].label}, step ${step}` }, String(step));
      button.addEventListener("click", () => { pause(); goTo(step); });
      section.append(button);
    }
    return section;
  });
  find("happenings").replaceChildren(...(sections.length ? sections : [htmlElement("p", { class: "note" }, "Nothing.")]));
}

// --- episodes ---

function listEpisodes() {
  DATA.episodes.forEach((episode, index) => {
    const button = htmlElement("button", { type: "button" });
    button.append(htmlElement("strong", {}, `return ${shortNumber(episode.total)}`), htmlElement("span", {}, `${episode.reward.length - 1} steps`));
    if (episode.player) button.append(htmlElement("span", {}, episode.player));
    if (episode.strip) {
      const strip = htmlElement("canvas", { "aria-hidden": "true" });
      drawHeat(strip, [episode.strip], SCALES.largest);
      button.append(strip);
    }
    button.addEventListener("click", () => choose(index));
    const item = htmlElement("li");
    item.append(button);
    find("episodes").append(item);
  });
}

function choose(index) {
  pause();
  state.episode = (index + DATA.episodes.length) % DATA.episodes.length;
  find("scrub").max = current().reward.length - 1;
  find("episodes").querySelectorAll("button").forEach((button, i) => button.setAttribute("aria-current", String(i === state.episode)));
  drawTraces();
  listHappenings();
  goTo(0);
}

// --- what people do ---

function stepUnder(event) {
  return traces.bands.at(event.clientX - find("charts").getBoundingClientRect().left);
}

function listen() {
  const on = (id, action) => find(id).addEventListener("click", action);
  on("play", () => (playing() ? pause() : play()));
  on("first", () => { pause(); goTo(0); });
  on("last", () => { pause(); goTo(Infinity); });
  on("back", () => { pause(); goTo(state.pinned - 1); });
  on("forward", () => { pause(); goTo(state.pinned + 1); });
  find("speed").addEventListener("change", () => playing() && play());
  find("scrub").addEventListener("input", (event) => {
    const step = Number(event.target.value); // read first: pausing puts the slider where the episode is
    pause();
    goTo(step);
  });

  const charts = find("charts");
  charts.addEventListener("pointermove", (event) => {
    if (event.buttons) { pause(); goTo(stepUnder(event)); } else if (!playing()) show(stepUnder(event));
  });
  charts.addEventListener("pointerdown", (event) => { pause(); goTo(stepUnder(event)); });
  charts.addEventListener("pointerleave", () => { if (!playing()) show(state.pinned); });

  document.addEventListener("keydown", (event) => {
    const focus = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || focus.matches("select")) return;
    if (event.key === " " && focus.matches("button")) return; // it presses the button
    if (focus.matches("input") && event.key !== " " && event.key.length > 1) return; // the slider knows its keys
    const stride = event.shiftKey ? 10 : 1;
    const actions = {
      " ": () => (playing() ? pause() : play()),
      ArrowRight: () => { pause(); goTo(state.pinned + stride); },
      ArrowLeft: () => { pause(); goTo(state.pinned - stride); },
      Home: () => { pause(); goTo(0); },
      End: () => { pause(); goTo(Infinity); },
      e: () => { pause(); nextEvent(); },
      n: () => choose(state.episode + 1),
      p: () => choose(state.episode - 1),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return; // a phone's address bar came or went
    width = window.innerWidth;
    drawTraces();
    show(state.step);
  });
}

function start() {
  find("title").textContent = DATA.title;
  find("meaning").textContent = DATA.meaning;
  for (const [name, value] of DATA.facts) {
    const fact = htmlElement("div");
    fact.append(htmlElement("dt", {}, name), htmlElement("dd", {}, value));
    find("facts").append(fact);
  }
  find("states").hidden = !DATA.bars;
  listEpisodes();
  listen();
  choose(0);
}

start();

// The credit of every state, for tasks that have few of them.

function drawStateBars(container, bars, place) {
  const width = Math.max(300, container.clientWidth);
  const height = 190;
  const svg = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  const values = bars.credit;
  const named = bars.labels.map((label, index) => `${label}: ${shortNumber(values[index])}`);
  svg.setAttribute("aria-label", `Credit of each state. ${named.join(", ")}`);
  const bands = new Bands(values.length, width);
  const y = frameOf(svg, bands, height - 34, range(values), { phases: [] });
  values.forEach((value, index) => {
    if (value === null) return;
    const attributes = {
      x: bands.start(index) + bands.size * 0.12,
      width: bands.size * 0.76,
      y: Math.min(y(value), y(0)),
      height: Math.max(1, Math.abs(y(value) - y(0))),
    };
    svgElement("rect", { class: value < 0 ? "bar below" : "bar", ...attributes }, svg);
    if (index === bars.decisive) svgElement("rect", { class: "decisive", ...attributes }, svg);
  });
  const every = bands.size < 22 ? 2 : 1; // labels that fit
  bars.labels.forEach((label, index) => {
    if ((index - bars.decisive) % every !== 0) return;
    const text = svgElement("text", { x: bands.middle(index), y: height - 18, "text-anchor": "middle" }, svg);
    text.textContent = label.replace("-", "−");
  });
  if (place !== null) svgElement("circle", { class: "here", cx: bands.middle(place), cy: height - 7, r: 4 }, svg);
  container.replaceChildren(svg);
}

// Heat maps: orange for a gain and blue for a loss, as strong as it is large.

// The largest size of any number in nested lists.
function largestOf(values) {
  if (!Array.isArray(values)) return Math.abs(values ?? 0);
  return values.reduce((largest, value) => Math.max(largest, largestOf(value)), 0);
}

// One pixel for each number of each row.
function drawHeat(canvas, rows, largest) {
  canvas.width = rows[0].length;
  canvas.height = rows.length;
  const context = canvas.getContext("2d");
  rows.forEach((row, y) => row.forEach((value, x) => {
    if (value === null || largest === 0) return;
    const strength = Math.min(1, Math.abs(value) / largest);
    context.fillStyle = value > 0 ? `rgba(226,98,10,${strength})` : `rgba(45,125,210,${strength})`;
    context.fillRect(x, y, 1, 1);
  }));
}

// The same inside a chart, over all of its bands.
function addHeat(svg, bands, rows, height, largest) {
  const canvas = document.createElement("canvas");
  drawHeat(canvas, rows, largest);
  const size = { x: bands.left, y: 0, width: bands.size * bands.count, height };
  svgElement("rect", { class: "heat-ground", ...size }, svg);
  svgElement("image", { class: "heat", href: canvas.toDataURL(), preserveAspectRatio: "none", ...size }, svg);
}

// What stands beside a row; only as many as there is room for.
function labelRows(svg, bands, height, labels) {
  const size = height / labels.length;
  const every = Math.ceil(12 / size);
  labels.forEach((label, row) => {
    if (row % every !== 0) return;
    const text = svgElement("text", { x: bands.left - 6, y: (row + 0.5) * size + 4, "text-anchor": "end" }, svg);
    text.textContent = label;
  });
}

function transposed(rows) { return rows[0].map((_, column) => rows.map((row) => row[column])); }

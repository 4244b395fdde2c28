// One scale for all episodes of a page, so that they can be compared.

function commonScales(episodes) {
  const strips = episodes.map((episode) => episode.strip);
  const charts = new Map(); // by title
  const heats = new Map(); // by the name of a term
  for (const episode of episodes) {
    const values = new Map(episode.terms.map((term) => [term.name, term.values]));
    for (const { title, bars, lines } of episode.charts) {
      const own = range(charts.get(title), bars, ...lines.map((name) => values.get(name)));
      charts.set(title, own);
    }
    for (const term of episode.terms) {
      if (term.kind !== "actions" && term.kind !== "pairs") continue;
      heats.set(term.name, Math.max(heats.get(term.name) ?? 0, largestOf(term.values)));
    }
  }
  return { credit: range(...strips), largest: largestOf(strips), charts, heats };
}

/** `; did you mean x?` for the name nearest to `wrong`, else the list of names when it is short, else nothing. */
export function hint(wrong: string, names: Iterable<string>): string {
  const all = [...names].filter((name) => !/[^\w.]/.test(name));
  const ranked = all.map((name) => ({ name, distance: distance(wrong.toLowerCase(), name.toLowerCase()) }));
  const best = ranked.sort((a, b) => a.distance - b.distance)[0];
  if (best !== undefined && best.distance <= Math.max(1, Math.floor(wrong.length / 3)))
    return `; did you mean ${best.name}?`;
  return all.length > 0 && all.length <= 16 ? `; known here: ${[...new Set(all)].sort().join(", ")}` : "";
}

/** Levenshtein: insertions, deletions and replacements that lead from `a` to `b`. */
function distance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(replaced, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}

/**
 * A hint for `request.headers.x-user`, which CEL reads as a subtraction: `name`, at `at`, stands behind a header's name and a
 * minus. Undefined for any other name.
 */
export function dashedHeader(text: string, name: string, at: number): string | undefined {
  const begun = /\b([\w.]*headers)\.([\w-]+-)$/.exec(text.slice(0, at));
  if (begun === null) return undefined;
  const rest = /^[\w-]*/.exec(text.slice(at))?.[0] ?? name;
  return `; a name with a dash is written ${begun[1]}["${begun[2]}${rest}"]`;
}

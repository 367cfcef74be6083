/**
 * The candidate closest to `name` if it is close enough to be a typing error, or if one is a part of the other, as
 * `prefix` is of `pathPrefix`, or `jwt` of `jwtAuth` and of no other.
 */
export function suggest(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1;
  let part: string | undefined;
  for (const candidate of candidates) {
    const known = candidate.toLowerCase();
    if (wanted.length > 3 && (known.includes(wanted) || (known.length > 3 && wanted.includes(known))))
      part = part === undefined || candidate.length < part.length ? candidate : part;
    const distance = editDistance(wanted, known, bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best ?? part ?? continued(wanted, candidates);
}

/** The only candidate that begins with a short name. */
function continued(wanted: string, candidates: Iterable<string>): string | undefined {
  const [only, ...others] = [...candidates].filter((each) => each.toLowerCase().startsWith(wanted));
  return wanted.length === 3 && others.length === 0 ? only : undefined;
}

/** Insertions, deletions, replacements and swaps of neighbours; at least `limit` when it is not less. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      next.push(cost);
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? limit;
}

/** A name of an object: lower-case letters, digits and dashes. */
export function nameOf(text: string): string {
  const name = text
    .toLowerCase()
    .replace(/^\*\./, "wildcard-")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60);
  return name === "" ? "all" : name.replace(/-+$/, "");
}

/** Makes names unique: a name that is taken gets a number. */
export class Names {
  readonly #taken = new Set<string>();

  unique(wanted: string): string {
    let name = wanted;
    for (let i = 2; this.#taken.has(name); i++) name = `${wanted}-${i}`;
    this.#taken.add(name);
    return name;
  }
}

/** A name for a listener that none of its port has; hosts such as `a.b` and `a-b` want the same. */
export function listenerName(hostname: string, others: Iterable<{ readonly name: string }>): string {
  const names = new Names();
  for (const { name } of others) names.unique(name);
  return names.unique(nameOf(hostname === "*" ? "any" : hostname));
}

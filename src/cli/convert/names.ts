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

import type { HeaderList } from "../message.ts";

const trailerNames = new WeakMap<HeaderList, readonly string[]>();

/** Remembers how the names of trailers were written, which go through the gateway as a list of lower-case names. */
export function rememberNames(trailers: HeaderList, rawNames: readonly string[]): void {
  trailerNames.set(trailers, rawNames);
}

/** Names of trailers as they were written; null = as they are in the list. */
export function rememberedNames(trailers: HeaderList): string[] | null {
  const rawNames = trailerNames.get(trailers);
  return rawNames === undefined ? null : alignNames(trailers, rawNames);
}

/**
 * Original-case names for a list that policies may have changed since it was read. Of fields with the same name, each gets
 * the case that it was written in; those that were added get the case of the last.
 */
export function alignNames(headers: HeaderList, rawNames: readonly string[]): string[] {
  const known = new Map<string, { readonly written: string[]; next: number }>();
  for (const name of rawNames) {
    const key = name.toLowerCase();
    const entry = known.get(key);
    if (entry === undefined) known.set(key, { written: [name], next: 0 });
    else entry.written.push(name);
  }
  const names: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    const entry = known.get(name);
    names.push(entry?.written[Math.min(entry.next++, entry.written.length - 1)] ?? name);
  }
  return names;
}

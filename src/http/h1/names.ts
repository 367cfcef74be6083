import type { HeaderList } from "../message.ts";

/** Original-case names for a list that policies may have changed since it was read. */
export function alignNames(headers: HeaderList, rawNames: readonly string[]): string[] {
  const known = new Map(rawNames.map((name) => [name.toLowerCase(), name]));
  const names: string[] = [];
  for (let i = 0; i < headers.length; i += 2) names.push(known.get(headers[i] as string) ?? (headers[i] as string));
  return names;
}

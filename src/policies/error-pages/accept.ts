/** `Accept`: which media types a client accepts, and how much it prefers each (RFC 9110 12.5.1). */
import type { HeaderList } from "../../http/message/message.ts";

/** A weight of at most three decimals (RFC 9110 12.4.2). */
const WEIGHT = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i;

/**
 * The type that the client weighs most. Among equals, one that it names beats one that only a wildcard covers, and then the first wins.
 * undefined = it accepts no offered type. Without the field, or with an empty one, it accepts everything.
 */
export function preferred<Type extends string>(headers: HeaderList, offered: readonly Type[]): Type | undefined {
  const ranges = rangesOf(headers);
  if (ranges === undefined || ranges.size === 0) return offered[0];
  let best: Type | undefined;
  let bestRank = 0;
  for (const type of offered) {
    const rank = rankOf(type, ranges);
    if (rank > bestRank) {
      best = type;
      bestRank = rank;
    }
  }
  return best;
}

/** The weight and, as a fraction of its smallest step, how precisely the client names the type. 0 = it does not accept the type. */
function rankOf(type: string, ranges: ReadonlyMap<string, number>): number {
  const [family] = type.split("/", 1);
  const precise = [type, `${family}/*`, "*/*"];
  // The most precise range counts, whatever the others say.
  const at = precise.findIndex((range) => ranges.has(range));
  const weight = at === -1 ? 0 : (ranges.get(precise[at] as string) ?? 0);
  return weight === 0 ? 0 : weight * 1000 + (precise.length - at) / 10;
}

/** The weight of each range that is listed, lower-case. A weight that is not valid counts as 1; other parameters say nothing about pages. */
function rangesOf(headers: HeaderList): ReadonlyMap<string, number> | undefined {
  let ranges: Map<string, number> | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== "accept") continue;
    ranges ??= new Map();
    for (const member of (headers[i + 1] as string).split(",")) {
      const [range = "", ...parameters] = member.split(";").map((part) => part.trim());
      const weight = parameters.map((each) => WEIGHT.exec(each)?.[1]).find((each) => each !== undefined);
      if (range.includes("/")) ranges.set(range.toLowerCase(), Number(weight ?? 1));
    }
  }
  return ranges;
}

/** `Accept`: which media types a client accepts, and how much it prefers each (RFC 9110 12.5.1). */
import type { HeaderList } from "../../http/message/message.ts";
import { weightsOf } from "../shared/weights.ts";

const RANGE = /^[!#$%&'*+.^_`|~0-9a-z-]+\/[!#$%&'*+.^_`|~0-9a-z-]+$/i;

/**
 * The type that the client weighs most. Among equals, one that it names beats one that only a wildcard covers, and then the first wins.
 * undefined = it accepts no offered type. Without the field, or with an empty one, it accepts everything.
 */
export function preferred<Type extends string>(headers: HeaderList, offered: readonly Type[]): Type | undefined {
  const ranges = weightsOf(headers, "accept", RANGE);
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

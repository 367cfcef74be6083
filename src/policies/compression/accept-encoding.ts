/** `Accept-Encoding`: which content codings a client accepts, and how much it prefers each (RFC 9110 12.5.3). */
import type { HeaderList } from "../../http/message/message.ts";
import type { ContentCoding } from "../contract/types.ts";
import { weightsOf } from "../shared/weights.ts";

const CODING = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;

/**
 * The coding to send: the one in `offered` that the client weighs most, the first among equals. undefined = send the content as it
 * is, because the client accepts no coding of these, prefers content without one, or has not said what it accepts.
 */
export function negotiate(headers: HeaderList, offered: readonly ContentCoding[]): ContentCoding | undefined {
  const weights = weightsOf(headers, "accept-encoding", CODING);
  if (weights === undefined) return undefined;
  const others = weights.get("*");
  let best: ContentCoding | undefined;
  // Content without a coding is acceptable unless it is excluded, but only a listed one is preferred to anything.
  let bestWeight = weights.get("identity") ?? others ?? 0;
  for (const coding of offered) {
    // RFC 9110 8.4.1.3: `x-gzip` is an old name of gzip.
    const weight = weights.get(coding) ?? (coding === "gzip" ? weights.get("x-gzip") : undefined) ?? others ?? 0;
    // With equal weights, a coding beats content without one, and an earlier coding a later one.
    if (weight > bestWeight || (best === undefined && weight === bestWeight && weight > 0)) {
      best = coding;
      bestWeight = weight;
    }
  }
  return best;
}

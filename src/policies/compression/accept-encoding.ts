/** `Accept-Encoding`: which content codings a client accepts, and how much it prefers each (RFC 9110 12.5.3). */
import type { HeaderList } from "../../http/message/message.ts";
import type { ContentCoding } from "../contract/types.ts";

/** `coding[;q=weight]`, with a weight of at most three decimals (RFC 9110 12.4.2). */
const MEMBER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:[ \t]*;[ \t]*[qQ]=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/;

/**
 * The coding to send: the one in `offered` that the client weighs most, the first among equals. undefined = send the content as it
 * is, because the client accepts no coding of these, prefers content without one, or has not said what it accepts.
 */
export function negotiate(headers: HeaderList, offered: readonly ContentCoding[]): ContentCoding | undefined {
  const weights = weightsOf(headers);
  if (weights === undefined) return undefined;
  const others = weights.get("*");
  let best: ContentCoding | undefined;
  // Content without a coding is acceptable unless it is excluded, but only a listed one is preferred to anything.
  let bestWeight = weights.get("identity") ?? others ?? 0;
  for (const coding of offered) {
    const weight = weights.get(coding) ?? others ?? 0;
    // With equal weights, a coding beats content without one, and an earlier coding a later one.
    if (weight > bestWeight || (best === undefined && weight === bestWeight && weight > 0)) {
      best = coding;
      bestWeight = weight;
    }
  }
  return best;
}

/** The weight of each coding that is listed, lower-case. Members that are not valid count as absent. */
function weightsOf(headers: HeaderList): Map<string, number> | undefined {
  let weights: Map<string, number> | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== "accept-encoding") continue;
    weights ??= new Map();
    for (const member of (headers[i + 1] as string).split(",")) {
      const [, name, weight = "1"] = MEMBER.exec(member.trim()) ?? [];
      if (name === undefined) continue;
      const coding = name.toLowerCase();
      // RFC 9110 8.4.1.3: `x-gzip` is an old name of gzip.
      weights.set(coding === "x-gzip" ? "gzip" : coding, Number(weight));
    }
  }
  return weights;
}

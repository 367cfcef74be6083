/** Weighted lists of what a client accepts, such as Accept and Accept-Encoding (RFC 9110 12.4.2). */
import type { HeaderList } from "../../http/message/message.ts";

const WEIGHT = /^q=/i;
/** At most three decimals. */
const VALUE = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * The weight of each member of the fields named `field`, by its lower-case name, which `valid` matches; undefined without such a field.
 * Members that are not valid count as absent; parameters other than the weight are ignored.
 */
export function weightsOf(headers: HeaderList, field: string, valid: RegExp): Map<string, number> | undefined {
  let weights: Map<string, number> | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== field) continue;
    weights ??= new Map();
    for (const member of (headers[i + 1] as string).split(",")) {
      const [name = "", ...parameters] = member.split(";").map((part) => part.trim());
      const weight = parameters.find((each) => WEIGHT.test(each))?.slice(2) ?? "1";
      if (valid.test(name) && VALUE.test(weight)) weights.set(name.toLowerCase(), Number(weight));
    }
  }
  return weights;
}

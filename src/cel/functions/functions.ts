/** All functions, in one table. */
import type { Overload } from "../environment/overload.ts";
import { COLLECTIONS, OPTIONALS } from "./collections.ts";
import { ENCODERS } from "./encoders.ts";
import { MATH } from "./math.ts";
import { NETWORK } from "./network.ts";
import { REQUESTS } from "./requests.ts";
import { STANDARD } from "./standard.ts";
import { STRINGS } from "./strings.ts";
import { TIMES } from "./times.ts";

const ALL: readonly Overload[] = [
  ...STANDARD,
  ...TIMES,
  ...STRINGS,
  ...MATH,
  ...COLLECTIONS,
  ...OPTIONALS,
  ...ENCODERS,
  ...NETWORK,
  ...REQUESTS,
];

/** All functions by name. */
export const FUNCTIONS: ReadonlyMap<string, readonly Overload[]> = Map.groupBy(ALL, ({ name }) => name);

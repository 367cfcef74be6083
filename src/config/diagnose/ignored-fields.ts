import { isObject } from "../../base/fields.ts";
import { isDeeperThan } from "../../base/paths.ts";
import type { KnownFields } from "../../translation/problems/known-fields.ts";
import type { ConfigSet } from "../parse/config-set.ts";

/** No configuration is nested more deeply. */
const MAX_DEPTH = 100;

const MESH = "belongs to the service mesh mode";
const MODELS = "belongs to the language model gateway";
const DATABASE = "belongs to the request database";

/**
 * Fields of `config` that only other modes read. One file often serves several deployments, so they are not errors; none
 * of them would protect traffic here. Fields that name a source of configuration or of identities are rejected
 * instead (unsupported fields), because a gateway that ignored them would not do what its file says.
 */
const OTHER_MODES: Readonly<Record<string, string>> = {
  session: "belongs to MCP sessions",
  mcp: "belongs to MCP sessions",
  modelCatalog: MODELS,
  database: DATABASE,
  standardAttributes: DATABASE,
  storage: "belongs to the web UI",
  hbone: MESH,
  serviceAccount: MESH,
  trustDomain: MESH,
  additionalTrustDomains: MESH,
  skipValidateTrustDomain: MESH,
};

/** Fields whose empty object chooses nothing and counts as absent. Elsewhere `{}` is a value, such as TLS with the system's CAs. */
const EMPTY_IS_ABSENT: ReadonlySet<string> = new Set(["authority", "path", "tracing"]);

/** User-defined data, in which null is a value. */
const FREE: ReadonlySet<string> = new Set(["metadata", "claims"]);

/**
 * A configuration without everything that counts as absent: fields that are null, choices that are empty objects, and fields
 * of `config` that belong to other modes, each of these with a warning.
 */
export function withoutIgnored(value: object, known: KnownFields, document: ConfigSet): object {
  // An alias may contain itself.
  if (isDeeperThan(value, MAX_DEPTH)) return value;
  const present = new Absence(known).remove(value) as { readonly config?: unknown };
  const { config } = present;
  if (!isObject(config)) return present;
  const kept = Object.entries(config).filter(([name]) => {
    if (!Object.hasOwn(OTHER_MODES, name)) return true;
    document.report(["config"], { message: `${OTHER_MODES[name]}; it has no effect here`, warning: true }, name);
    return false;
  });
  return { ...present, config: Object.fromEntries(kept) };
}

/** Maps by name: an entry exists because it is named, so an empty one is an error. */
const NAMED: ReadonlySet<string> = new Set(["gateways"]);

/**
 * Removes absent fields from a value; a null under a name that the schema does not have stays, so that it is rejected. Objects
 * with nothing to remove are not copied: with 10,000 routes, copying took a fifth of the load time.
 */
class Absence {
  readonly #known: KnownFields;
  /** Of the value at hand. */
  readonly #path: PropertyKey[] = [];

  constructor(known: KnownFields) {
    this.#known = known;
  }

  /** `named`: the keys of the object are names. */
  remove(value: unknown, named = false): unknown {
    if (Array.isArray(value)) {
      const present = value.map((each, i) => this.#removeAt(i, each, false));
      return present.every((each, i) => each === value[i]) ? value : present;
    }
    if (typeof value !== "object" || value === null) return value;
    let changed = false;
    const present = Object.entries(value).filter((entry) => {
      const [name, inner] = entry;
      const absent = !named && this.#isAbsent(name, inner);
      if (!absent && !FREE.has(name))
        entry[1] = this.#removeAt(name, inner, this.#path.length === 0 && NAMED.has(name));
      changed ||= absent || entry[1] !== inner;
      return !absent;
    });
    return changed ? Object.fromEntries(present) : value;
  }

  #removeAt(part: PropertyKey, value: unknown, named: boolean): unknown {
    if (typeof value !== "object" || value === null) return value;
    this.#path.push(part);
    const left = this.remove(value, named);
    this.#path.pop();
    return left;
  }

  /** `invalid: null` is how dumps write a backend that cannot be used. */
  #isAbsent(name: string, value: unknown): boolean {
    if (value === null) return name !== "invalid" && this.#known(this.#path).includes(name);
    return EMPTY_IS_ABSENT.has(name) && typeof value === "object" && Object.keys(value as object).length === 0;
  }
}

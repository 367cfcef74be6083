import { hash } from "node:crypto";
import { GatewayError } from "../base/errors.ts";
import { REDACTED } from "../base/redaction.ts";
import type { Need } from "../cel/index.ts";
import { getHeader } from "../http/message/message.ts";
import { backendName } from "../ir/backend-name.ts";
import type { AssumeCredential, PolicyDeps } from "../policies/contract/deps.ts";
import { isShadowKey } from "../policies/contract/shadow.ts";
import type { Split } from "../proxy/services/services.ts";
import { certificatesIn } from "../tls/assumed-certificate.ts";
import type { AssumedCertificate } from "../tls/tls-terminator.ts";
import type { CalloutAnswers } from "../upstream/callouts/callout.ts";
import { AssumedProcessor, authzHttp, authzMessage, httpOf, rateLimitMessage } from "./assumed-services.ts";
import {
  type AssumedAnswer,
  type AssumedResponse,
  type AssumptionName,
  type Assumptions,
  placed,
} from "./assumptions.ts";
import { CONDITION } from "./condition.ts";

/** The services that decide about requests or connections, by what calls are for. */
const AUTHORIZERS: Readonly<Record<string, "extAuthz" | "networkExtAuthz">> = {
  ext_authz: "extAuthz",
  network_ext_authz: "networkExtAuthz",
};

/** What an outcome was given, by name: what was assumed, and what was chosen because the facts leave it open. */
export type Given = Readonly<Record<string, unknown>>;

export type CredentialKind = Parameters<AssumeCredential>[0];

/** Something that is not known, though the outcome depends on it. */
export interface Lack extends Need {
  /** The choice in `given` that is made because of it; absent if only a value depends on it. */
  readonly choice?: string;
}

/** One decision that the facts leave open. */
export interface Asked {
  /** The key or label of the route whose backend is chosen. */
  readonly route?: string;
  readonly value: unknown;
  readonly others: readonly unknown[];
  /** Share of requests that get the value, by the weights of backends; 1 for services. */
  readonly share: (value: unknown) => number;
  /** Of the policy that asks, with its secrets: the same for policies that are alike. Absent: chance or a fact is asked for. */
  readonly policy?: string;
}

/** Digests of policies, made when one asks. */
class PolicyDigests {
  readonly #known = new WeakMap<object, string>();

  of(config: object): string {
    let digest = this.#known.get(config);
    if (digest === undefined) {
      digest = hash("sha256", JSON.stringify(config));
      this.#known.set(config, digest);
    }
    return digest;
  }
}

/** Runs about one request: with more choices, the rest is left out. */
export const MAX_RUNS = 16;

/** Adds what a run was not given: each other value of its choices, with the values of those before. */
export function pushOthers(open: Given[], given: Given, asked: ReadonlyMap<string, Asked>): void {
  let known = given;
  for (const [choice, { value, others }] of asked) {
    if (choice in given) continue;
    for (const other of others) open.push({ ...known, [choice]: other });
    known = { ...known, [choice]: value };
  }
}

/** The names of backends; if two have the same, their keys, with a number for one that is there again. */
function namesOf(backends: Split["backends"]): string[] {
  const names = backends.map(backendName);
  return backends.map(({ key }, i) => {
    const name = names[i] ?? key;
    if (names.indexOf(name) === names.lastIndexOf(name)) return name;
    const before = backends.slice(0, i).filter((other) => other.key === key).length;
    return before === 0 ? key : `${key}#${before + 1}`;
  });
}

const NO_POLICY = {};

/** For callouts whose response no policy decides by: mirrors ignore it, and `backendAuth` takes a token from it. */
const TOKEN: AssumedResponse = {
  headers: { "content-type": "application/json" },
  body: '{"access_token":"assumed","token_type":"Bearer","expires_in":3600}',
};

/** Decides in place of services and chance, and notes on what the outcome depends. */
export class Choices {
  #given: Given = {};
  /** What this run was asked, in order. */
  readonly asked = new Map<string, Asked>();
  readonly #digests = new PolicyDigests();
  /** The policy whose service decides about the connection of the request. */
  networkPolicy: object = NO_POLICY;
  /** For services that no policy of requests calls. */
  readonly answers = this.#answersAt(() => this.networkPolicy);
  /** What is not known in this run, though something depends on it; by what depends on it, and what it is. */
  readonly needs = new Map<string, Lack>();

  /** The credentials that are only known to be valid, by the variable that has what they say about the client. */
  readonly unknownClients = new Map<string, CredentialKind>();
  /** The request may have had credentials that are not among its facts. */
  #mayHaveCredentials = false;

  /** Begins a run. `isPartly`: only a part of the request is known. */
  begin(given: Given, isPartly = false): void {
    this.#given = given;
    this.#mayHaveCredentials = isPartly;
    // Most runs ask nothing, and `clear` allocates.
    if (this.asked.size > 0) this.asked.clear();
    if (this.needs.size > 0) this.needs.clear();
    if (this.unknownClients.size > 0) this.unknownClients.clear();
  }

  /** What is assumed about a fact that is asked for now; undefined: nothing. */
  assumed<Name extends AssumptionName>(name: Name): Assumptions[Name] {
    const value = (this.#given as Assumptions)[name];
    if (value !== undefined) this.asked.set(name, { value, others: [], share: () => 1 });
    return value;
  }

  /** The certificate that the client is assumed to have; asked for by listeners that want one. */
  readonly clientCertificate: AssumedCertificate = () => {
    const pem = this.assumed("clientCertificate");
    return pem === undefined ? undefined : certificatesIn(pem);
  };

  /** Whether a condition is met that depends on what is not known. */
  condition(text: string, needs: readonly Need[]): boolean {
    const name = `${CONDITION}${text}`;
    this.lacks(needs, name);
    const value = this.#given[name] !== false;
    this.asked.set(name, { value, others: [!value], share: () => 1 });
    return value;
  }

  /** `choice`: the one that is made because of it; undefined: a value is made from what the request has. */
  lacks(needs: readonly Need[], choice?: string): void {
    for (const need of needs)
      this.needs.set(JSON.stringify([choice, need.what]), { ...need, ...(choice !== undefined && { choice }) });
  }

  /** Binds a policy to choices that are its own: `extAuthz@route`. */
  readonly rehearsed = (deps: PolicyDeps, key: string, config: object): PolicyDeps => {
    const place = deps.shadow === true || isShadowKey(key) ? "shadow" : deps.phase;
    const answers = this.#answersAt(() => config, place);
    return {
      ...deps,
      callouts: (target, policies) => deps.callouts(target, policies).answeredBy(answers),
      assumedCredential: this.#credentialAt(place, config),
    };
  };

  /** Responds in place of services. `asking`: the policy that calls. `place`: where it is; undefined for policies of connections. */
  #answersAt(asking: () => object, place?: string): CalloutAnswers {
    const choose = <Name extends AssumptionName>(
      name: Name,
      values: readonly NonNullable<Assumptions[Name]>[],
    ): NonNullable<Assumptions[Name]> => this.#choose(name, values, asking(), place);
    return {
      http: (scope) => {
        const service = AUTHORIZERS[scope ?? ""];
        return service === undefined ? httpOf(TOKEN) : authzHttp(choose(service, ["allow", "deny"]));
      },
      unary: (scope) => {
        const service = AUTHORIZERS[scope ?? ""];
        if (service !== undefined) return authzMessage(choose(service, ["allow", "deny"]));
        return scope === "rate_limit" ? rateLimitMessage(choose("remoteRateLimit", ["under", "over"])) : undefined;
      },
      // Only processing services are called by streams.
      stream: (events) => {
        const value = choose("extProc", ["allow", "fail"]);
        if (value === "fail")
          throw new GatewayError("TG_UPSTREAM_FAILED", undefined, new Error("the service is assumed to fail"));
        return new AssumedProcessor(value, events);
      },
    };
  }

  /** A credential that is redacted, or may be there, is a choice; one that is assumed is taken for that, whatever the request has. */
  #credentialAt(place: string, asking: object): AssumeCredential {
    return (kind, presented, headers) => {
      const text = presented ?? getHeader(headers, kind === "oidc" ? "cookie" : "authorization") ?? "";
      const [, given] = this.#givenFor(kind, place);
      const mayBeThere = text === "" && this.#mayHaveCredentials;
      if (given === undefined && !text.includes(REDACTED) && !mayBeThere) return undefined;
      const value = this.#choose(
        kind,
        mayBeThere ? ["valid", "invalid", "missing"] : ["valid", "invalid"],
        asking,
        place,
      );
      if (value === "missing") return undefined;
      if (value !== "valid") return value;
      this.unknownClients.set(kind === "oidc" ? "jwt" : kind, kind);
      return {};
    };
  }

  /** What the backend at this endpoint responds, or how it fails; asked for each connection and request that reaches it. */
  response(endpoint: string): AssumedAnswer {
    const [from, given] = this.#givenFor("response", endpoint);
    if (given !== undefined) this.asked.set(from, { value: given, others: [], share: () => 1 });
    return given ?? {};
  }

  /** The index of the backend that a request goes to. Delegation and retries that change the backend make several choices. */
  readonly backend = ({ key, label, backends }: Split): number => {
    const used = backends.filter(({ weight }) => weight > 0);
    const [first, ...others] = used;
    if (first === undefined || others.length === 0) return first === undefined ? -1 : backends.indexOf(first);
    const total = used.reduce((sum, { weight }) => sum + weight, 0);
    const names = namesOf(used);
    const named = (value: unknown) =>
      used.find((_, i) => names[i] === value) ?? used.find((each) => each.key === value);
    const share = (value: unknown): number => (named(value)?.weight ?? 0) / total;
    let name = placed("backend", label);
    for (let i = 2; this.asked.has(name); i++) name = placed("backend", `${label}#${i}`);
    // What is assumed may be about another of the choices.
    const from = [name, "backend"].find((each) => !this.asked.has(each) && named(this.#given[each]) !== undefined);
    const value = from === undefined ? names[0] : this.#given[from];
    const chosen = named(value) ?? first;
    const unchosen = names.filter((_, i) => used[i] !== chosen);
    this.asked.set(from ?? name, { route: key ?? label, value, others: unchosen, share });
    return backends.indexOf(chosen);
  };

  /** The value of a choice: the one that is given, else the first; an assumption can be any other value. */
  #choose<Name extends AssumptionName>(
    name: Name,
    values: readonly NonNullable<Assumptions[Name]>[],
    asking: object,
    place?: string,
  ): NonNullable<Assumptions[Name]> {
    const [from, given] = this.#givenFor(name, place);
    const value = given ?? (values[0] as NonNullable<Assumptions[Name]>);
    const others = values.filter((other) => other !== value);
    this.asked.set(from, { value, others, share: () => 1, policy: this.#digests.of(asking) });
    return value;
  }

  /** What is given about this place, or else about all; and its name. */
  #givenFor<Name extends AssumptionName>(name: Name, place: string | undefined): [from: string, Assumptions[Name]] {
    const own = place === undefined ? name : placed(name, place);
    const from = own in this.#given || !(name in this.#given) ? own : name;
    return [from, this.#given[from] as Assumptions[Name]];
  }
}

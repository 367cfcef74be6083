/**
 * `ipAccess` (docs/policies/ip-access.md): allows or denies requests by the address of the client. In: networks, from the configuration
 * or from files. Out: nothing, or 403. Runs in the gateway and the route phase, before authentication.
 */
import { createHash } from "node:crypto";
import { counted } from "../../base/counted.ts";
import { groupsOfAddress, Networks, parseNetwork } from "../../base/ip-address.ts";
import { applied, Decisions, rejected } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { PolicyError, type PolicyProblem } from "../contract/policy-error.ts";
import type { Authenticator } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { authenticatingHooks } from "../shared/credentials/authenticate.ts";
import type { IpAccess } from "./schema.ts";

const KIND = "ipAccess";
/** Reported mistakes of one list; a wrong file may have one on every line. */
const MAX_PROBLEMS = 3;

type AccessDecision =
  | { readonly code: "allowed"; readonly address: string; readonly network: string | undefined }
  | { readonly code: "denied"; readonly address: string; readonly network: string }
  | { readonly code: "notAllowed" | "noAddress"; readonly address: string }
  | { readonly code: "assumed"; readonly allowed: boolean };

const decisions = new Decisions<AccessDecision>(KIND, {
  allowed: ({ address, network }) =>
    applied(network === undefined ? `${address} is not in deny` : `${address} is in allow (${network})`, {
      allowed: true,
      address,
    }),
  denied: ({ address, network }) =>
    rejected(`${address} is in deny (${network})`, { allowed: false, address, network }),
  notAllowed: ({ address }) => rejected(`${address} is not in allow`, { allowed: false, address }),
  noAddress: ({ address }) =>
    rejected(
      address === ""
        ? "the client has no IP address, because it uses a Unix socket"
        : `${JSON.stringify(address)}, as a trusted proxy reports the client, is not an IP address`,
      { allowed: false },
    ),
  assumed: ({ allowed }) =>
    (allowed ? applied : rejected)(
      `the address of the client is not known; it is assumed that it ${allowed ? "may" : "may not"} pass`,
      { allowed },
    ),
});

export const ipAccess = definePolicy({
  decisions,
  kind: KIND,
  phases: ["gateway", "route"],
  prepare(config: IpAccess) {
    const bind = prepareIpAccess(config);
    return (deps) => authenticatingHooks(bind(deps));
  },
  redact: (config) => config,
  // Lists may have thousands of lines, and every trace would repeat them.
  traceView: ({ allow, deny }) => ({ ...lengthOf("allow", allow), ...lengthOf("deny", deny) }),
  // A route cannot undo what its gateway denies.
  merge: (outer, inner) => {
    const allow = inner.allow ?? outer.allow;
    const deny = [...(outer.deny ?? []), ...(inner.deny ?? [])];
    return { ...(allow !== undefined && { allow }), ...(deny.length > 0 && { deny }) };
  },
});

function lengthOf(side: string, list: IpAccess["allow"]): Readonly<Record<string, string>> {
  if (list === undefined) return {};
  return { [side]: counted(list.flatMap(networksIn).length, "network") };
}

/** Reads the lists. Throws a PolicyError for a line that is neither an address nor a network. */
export function prepareIpAccess({ allow, deny }: IpAccess): (deps: PolicyDeps) => Authenticator {
  const allowed = allow && readList("allow", allow);
  const denied = deny && readList("deny", deny);
  const decide = (address: string): AccessDecision => {
    // Link-local clients have a zone, which networks do not.
    const groups = groupsOfAddress(address);
    if (groups === undefined) return { code: "noAddress", address };
    const denying = denied?.findGroups(groups);
    if (denying !== undefined) return { code: "denied", address, network: denying };
    const network = allowed?.findGroups(groups);
    return allowed !== undefined && network === undefined
      ? { code: "notAllowed", address }
      : { code: "allowed", address, network };
  };
  const condition = conditionOf([allow, deny]);
  return ({ assumedAddress }) => ({
    verify({ clientAddress }, trace) {
      const assumed = assumedAddress?.(condition);
      const decision = assumed === undefined ? decide(clientAddress) : ({ code: "assumed", allowed: assumed } as const);
      const isAllowed = decision.code === "assumed" ? decision.allowed : decision.code === "allowed";
      if (!isAllowed) throw decisions.reject(trace, decision, "TG_AUTHORIZATION");
      trace?.report(decisions, decision);
      return asItIs;
    },
    discard: asItIs,
  });
}

/** An address is no credential that a request carries. */
function asItIs(): void {}

/** Names the decision where the client is not known. Other lists may decide otherwise, so they have another name. */
function conditionOf(lists: readonly IpAccess["allow"][]): string {
  const digest = createHash("sha256").update(JSON.stringify(lists)).digest("hex").slice(0, 8);
  return `ipAccess ${digest} allows the address of the client`;
}

function readList(side: "allow" | "deny", texts: readonly string[]): Networks {
  const problems: PolicyProblem[] = [];
  const networks = texts.flatMap((text, i) => {
    const lines = networksIn(text);
    for (const { network, line } of lines) {
      if (parseNetwork(network) !== undefined) continue;
      const where = text.includes("\n") ? `line ${line}: ` : "";
      const reason = `${where}${JSON.stringify(network)} is not an IP address or network; write one such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`;
      problems.push({ path: [side, i], reason });
    }
    return lines.map(({ network }) => network);
  });
  const [first, ...others] = problems.slice(0, MAX_PROBLEMS);
  if (first !== undefined) throw new PolicyError([first, ...others]);
  return new Networks(networks);
}

/** The networks of a text with their lines, without comments and empty lines. */
function networksIn(text: string): { readonly network: string; readonly line: number }[] {
  return text.split("\n").flatMap((written, i) => {
    const [network = ""] = written.split("#", 1);
    return network.trim() === "" ? [] : [{ network: network.trim(), line: i + 1 }];
  });
}

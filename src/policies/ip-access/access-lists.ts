/** Whether an address may pass `allow` and `deny`: of the client of a request, or of the peer of a connection. */
import { createHash } from "node:crypto";
import { groupsOfAddress, Networks, parseNetwork } from "../../base/ip-address.ts";
import { applied, Decisions, rejected } from "../contract/decisions.ts";
import { PolicyError, type PolicyProblem } from "../contract/policy-error.ts";
import type { IpAccess } from "./schema.ts";

/** Reported mistakes of one list; a wrong file may have one on every line. */
const MAX_PROBLEMS = 3;

export type AccessDecision =
  | { readonly code: "allowed"; readonly address: string; readonly network: string | undefined }
  | { readonly code: "denied"; readonly address: string; readonly network: string }
  | { readonly code: "notAllowed" | "noAddress"; readonly address: string }
  | { readonly code: "assumed"; readonly allowed: boolean };

export const decisions = new Decisions<AccessDecision>("ipAccess", {
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

/** The lists of one policy, ready for lookups. */
export class AccessLists {
  readonly #allowed: Networks | undefined;
  readonly #denied: Networks | undefined;
  /** Names the decision where the client is not known. Other lists may decide otherwise, so they have another name. */
  readonly condition: string;

  /** Throws a PolicyError, whose paths begin in the policy, for a line that is neither an address nor a network. */
  constructor({ allow, deny }: IpAccess) {
    this.#allowed = allow && readList("allow", allow);
    this.#denied = deny && readList("deny", deny);
    const digest = createHash("sha256")
      .update(JSON.stringify([allow, deny]))
      .digest("hex")
      .slice(0, 8);
    this.condition = `ipAccess ${digest} allows the address of the client`;
  }

  decide(address: string): Exclude<AccessDecision, { readonly code: "assumed" }> {
    // Link-local clients have a zone, which networks do not.
    const groups = groupsOfAddress(address);
    if (groups === undefined) return { code: "noAddress", address };
    const denying = this.#denied?.findGroups(groups);
    if (denying !== undefined) return { code: "denied", address, network: denying };
    const network = this.#allowed?.findGroups(groups);
    return this.#allowed !== undefined && network === undefined
      ? { code: "notAllowed", address }
      : { code: "allowed", address, network };
  }
}

export function isAllowed(decision: AccessDecision): boolean {
  return decision.code === "assumed" ? decision.allowed : decision.code === "allowed";
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
export function networksIn(text: string): { readonly network: string; readonly line: number }[] {
  return text.split("\n").flatMap((written, i) => {
    const [network = ""] = written.split("#", 1);
    return network.trim() === "" ? [] : [{ network: network.trim(), line: i + 1 }];
  });
}

import { SUPPORTED_FEATURES } from "../../src/controller/status/features.ts";

/** The objects that features belong to; a feature's name begins with its object's. */
const SUBJECTS = [
  "BackendTLSPolicy",
  "Gateway",
  "GRPCRoute",
  "HTTPRoute",
  "ListenerSet",
  "ReferenceGrant",
  "TCPRoute",
  "TLSRoute",
  "UDPRoute",
] as const;

/** The features that the GatewayClass claims, as a table by object. @throws Error for a feature of another object */
export function featureTable(): string {
  const rows = new Map<string, string[]>(SUBJECTS.map((subject) => [subject, []]));
  for (const { name } of SUPPORTED_FEATURES) {
    const subject = SUBJECTS.find((known) => name.startsWith(known));
    const features = subject === undefined ? undefined : rows.get(subject);
    if (features === undefined) throw new Error(`feature ${name} belongs to none of ${SUBJECTS.join(", ")}`);
    features.push(`\`${name}\``);
  }
  const lines = [...rows].flatMap(([subject, features]) =>
    features.length === 0 ? [] : [`| ${subject} | ${features.join(", ")} |`],
  );
  return ["| object | features |", "|---|---|", ...lines, ""].join("\n");
}

/**
 * What takes the place of policies that are invalid. A policy that restricts access must not disappear because of a mistake in it:
 * requests are denied until it is corrected. Other kinds are left out.
 */
import { formatOrigin, type ObjectName } from "../../../base/origin.ts";
import type { Path } from "../../../base/paths.ts";
import { levelOf, type PolicyLevel } from "../../../ir/origins.ts";
import { networkSchema } from "../../../policies/ext-authz/network-schema.ts";
import { schema as ipAccess } from "../../../policies/ip-access/schema.ts";
import { mergeLevels } from "../../../policies/merge.ts";
import type { PolicyKind, PolicySet } from "../../../policies/policy-set.ts";
import type { FrontendInput } from "../../../translation/schema/frontend.ts";
import type { FrontendField } from "../../crd/policy.ts";
import { NO_BACKEND } from "../../crd/references.ts";

/**
 * What happens if a policy of each kind is invalid. `deny`: without the policy, requests would pass that should not, or too many of them, or they would reach backends that they should not
 * (`directResponse` and `requestRedirect` keep them away), or without their credentials. `cut`: connections would go to other servers or be unprotected, so none are made.
 */
const WITHOUT: Readonly<Record<PolicyKind, "deny" | "cut" | "continue">> = {
  authorization: "deny",
  extAuthz: "deny",
  jwtAuth: "deny",
  basicAuth: "deny",
  apiKey: "deny",
  oidc: "deny",
  satisfy: "deny",
  ipAccess: "deny",
  csrf: "deny",
  extProc: "deny",
  localRateLimit: "deny",
  concurrencyLimit: "deny",
  remoteRateLimit: "deny",
  maxRequestBodySize: "deny",
  backendAuth: "deny",
  backendTLS: "cut",
  backendTunnel: "cut",
  requestHeaderModifier: "continue",
  responseHeaderModifier: "continue",
  urlRewrite: "continue",
  requestRedirect: "deny",
  directResponse: "deny",
  timeout: "continue",
  cors: "continue",
  requestMirror: "continue",
  transformations: "continue",
  retry: "continue",
  http: "continue",
  tcp: "continue",
  health: "continue",
  sessionAffinity: "continue",
  retryBudget: "continue",
  delay: "continue",
  buffer: "continue",
  grpcWeb: "continue",
  compression: "continue",
  errorPages: "continue",
  sessionPersistence: "continue",
};

/** No certificate has this name (RFC 6761, section 6.4), so that no connection can be verified. */
const NO_NAME = "policy.invalid";

/** Whether the place of one of these kinds is taken by something that denies, or that no connection passes. */
export function denies(invalid: readonly (PolicyKind | FrontendField)[]): boolean {
  return invalid.some((kind) =>
    isPolicyKind(kind) ? WITHOUT[kind] !== "continue" : kind === "networkAuthorization" || kind === "networkExtAuthz",
  );
}

function isPolicyKind(kind: PolicyKind | FrontendField): kind is PolicyKind {
  return Object.hasOwn(WITHOUT, kind);
}

/** `level`: the valid policies at `path` of the object. */
export function failClosed(
  level: PolicyLevel,
  invalid: readonly PolicyKind[],
  path: Path,
  object: ObjectName,
): PolicyLevel {
  const replacing: PolicySet = {
    ...(invalid.includes("backendTLS") && {
      backendTLS: { hostname: NO_NAME, subjectAltNames: [NO_NAME], insecure: false, insecureHost: false },
    }),
    ...(invalid.includes("backendTunnel") && { backendTunnel: { proxy: { type: "invalid", reference: "" } } }),
  };
  const denying = invalid.filter((kind) => WITHOUT[kind] === "deny");
  const replaced = mergeLevels(
    level,
    levelOf(replacing, (field) => ({ in: object, at: [...path, field] })),
  );
  if (denying.length === 0) return replaced;
  const owner = formatOrigin({ object, path: [] });
  const reason = `${denying.join(", ")} of ${owner} ${denying.length === 1 ? "is" : "are"} invalid, see its status`;
  const authorization = { rules: [{ mode: "require", expression: `fail(${JSON.stringify(reason)})` }] } as const;
  const at = denying.length === 1 ? [...path, ...denying] : path;
  return mergeLevels(replaced, { set: { authorization }, sources: { authorization: [{ in: object, at }] } });
}

/**
 * The same for connections of clients. Each field is replaced by one that rejects, not by another field: a narrower policy could
 * replace that one.
 */
export function failClosedFrontend(input: FrontendInput, invalid: readonly FrontendField[]): FrontendInput {
  return {
    ...input,
    ...(invalid.includes("ipAccess") && { ipAccess: NOBODY }),
    ...(invalid.includes("networkAuthorization") && { networkAuthorization: { rules: [{ require: "false" }] } }),
    ...(invalid.includes("networkExtAuthz") && { networkExtAuthz: NO_AUTHORIZATION_SERVICE }),
  };
}

/** Lists that no address may pass. */
const NOBODY = ipAccess.parse({ deny: ["0.0.0.0/0", "::/0"] });

/** A service that cannot be called, so that no connection is authorized. */
const NO_AUTHORIZATION_SERVICE = networkSchema.parse(NO_BACKEND);

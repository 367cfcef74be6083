import { createHash } from "node:crypto";
import { BoundedCache } from "../../base/bounded-cache.ts";
import { messageOf } from "../../base/errors.ts";
import type { KubeClient } from "../../kube/client.ts";

/** The ServiceAccount that a token belongs to. */
export interface Identity {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** The pod that the token was made for, if the API server knows it. */
  readonly pod?: string;
}

/** A proxy may not connect; `temporary`: because its token could not be checked. */
export class AuthError extends Error {
  readonly temporary: boolean;
  constructor(message: string, temporary = false, options?: ErrorOptions) {
    super(message, options);
    this.temporary = temporary;
  }
}

/** Checks the token of a proxy. Rejects with AuthError. */
export type Authenticate = (token: string) => Promise<Identity>;

/** Milliseconds. A deleted ServiceAccount keeps its access this long; reconnecting proxies do not flood the API server. */
const ACCEPTED_MS = 60_000;
const REJECTED_MS = 10_000;
const MAX_TOKENS = 10_000;
/** Most concurrent checks. Strangers with random tokens must not exhaust memory or make proxies wait for minutes. */
const MAX_CHECKS = 500;

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly error?: string;
    readonly audiences?: readonly string[];
    readonly user?: { readonly username?: string; readonly extra?: Readonly<Record<string, readonly string[]>> };
  };
}

interface ReviewedToken {
  readonly until: number;
  readonly result: Identity | AuthError;
}

/** Asks the API server by TokenReview, with short-lived results by the digest of the token. `now`: a clock in milliseconds. */
export function tokenReviewer(client: KubeClient, audience: string, now: () => number = Date.now): Authenticate {
  const known = new BoundedCache<ReviewedToken>(MAX_TOKENS);
  let checks = 0;
  return async (token) => {
    const key = createHash("sha256").update(token).digest("base64url");
    const cached = known.get(key);
    if (cached !== undefined && cached.until > now()) return unwrap(cached.result);
    if (checks >= MAX_CHECKS) throw new AuthError("too many tokens are being checked; connect again later", true);
    checks++;
    const review = await ask(client, token, audience).finally(() => checks--);
    const result = identityOf(review, audience);
    known.set(key, { until: now() + (result instanceof AuthError ? REJECTED_MS : ACCEPTED_MS), result });
    return unwrap(result);
  };
}

async function ask(client: KubeClient, token: string, audience: string): Promise<TokenReview> {
  const body = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    spec: { token, audiences: [audience] },
  };
  try {
    return await client.request<TokenReview>("POST", "/apis/authentication.k8s.io/v1/tokenreviews", { body });
  } catch (error) {
    throw new AuthError(`the token could not be checked: ${messageOf(error)}`, true, { cause: error });
  }
}

const USER = /^system:serviceaccount:([^:]+):([^:]+)$/;

function identityOf({ status }: TokenReview, audience: string): Identity | AuthError {
  if (status?.authenticated !== true)
    return new AuthError(`the token is not valid${status?.error === undefined ? "" : `: ${status.error}`}`);
  // An API server that ignores audiences would accept every token of the cluster.
  if (status.audiences?.includes(audience) !== true)
    return new AuthError(`the token was not made for the audience ${audience}`);
  const [, namespace, serviceAccount] = USER.exec(status.user?.username ?? "") ?? [];
  if (namespace === undefined || serviceAccount === undefined)
    return new AuthError("the token does not belong to a ServiceAccount");
  const [pod] = status.user?.extra?.["authentication.kubernetes.io/pod-name"] ?? [];
  return { namespace, serviceAccount, ...(pod !== undefined && { pod }) };
}

function unwrap(result: Identity | AuthError): Identity {
  if (result instanceof AuthError) throw result;
  return result;
}

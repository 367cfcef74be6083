/** An active health check in compiled form; apart from the probes, because it is part of the identity of endpoints. */
import type { HttpRequest } from "../../http/message/message.ts";
import { tlsIdentity } from "../../tls/tls-client.ts";
import type { ActiveHealthCheck, Health } from "../settings/settings.ts";
import type { Endpoint } from "./endpoint.ts";

/** Applies the policies of the backend to a probe before it is sent, such as by adding credentials. */
type PrepareProbe = (request: HttpRequest & { body?: Uint8Array }, context: undefined) => void | Promise<void>;

/** How the endpoints of a backend are probed. */
export interface HealthCheck {
  readonly settings: ActiveHealthCheck;
  /** Distinguishes it from others: endpoints that are probed in another way have a separate state. */
  readonly identity: string;
  readonly prepare: PrepareProbe | undefined;
}

/** Receives the endpoints to probe as they are added and removed. */
export interface CheckedEndpoints {
  add(endpoint: Endpoint, check: HealthCheck): void;
  delete(endpoint: Endpoint): void;
}

/** The policies of a backend that affect its probes, besides those of its connections. */
interface ProbePolicies {
  readonly health?: Health | undefined;
  readonly backendAuth?: unknown;
  readonly transformations?: unknown;
  readonly requestHeaderModifier?: unknown;
}

/** `identity` of the check of a backend with these policies; undefined without one. */
export function checkIdentity(policies: ProbePolicies): string | undefined {
  const { health, backendAuth, transformations, requestHeaderModifier } = policies;
  if (health?.active === undefined) return undefined;
  return tlsIdentity({ active: health.active, backendAuth, transformations, requestHeaderModifier });
}

/** An active health check of endpoints, as it is compiled; apart from the probes, because endpoints are known by it. */
import type { HttpRequest } from "../../http/message.ts";
import { tlsIdentity } from "../../tls/tls-client.ts";
import type { Endpoint } from "../endpoint.ts";
import type { ActiveHealthCheck, Health } from "../settings.ts";

/** Completes a probe before it is sent, such as by credentials: the policies of the backend. */
type PrepareProbe = (request: HttpRequest & { body?: Uint8Array }, context: undefined) => void | Promise<void>;

/** How the endpoints of a backend are probed. */
export interface HealthCheck {
  readonly settings: ActiveHealthCheck;
  /** Tells it from others: endpoints that are probed in another way have a state of their own. */
  readonly identity: string;
  readonly prepare: PrepareProbe | undefined;
}

/** Takes note of endpoints to probe, as they come and go. */
export interface CheckedEndpoints {
  add(endpoint: Endpoint, check: HealthCheck): void;
  delete(endpoint: Endpoint): void;
}

/** The policies of a backend that make a difference to its probes, besides those of its connections. */
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

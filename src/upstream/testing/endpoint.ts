import { Endpoint } from "../endpoint.ts";
import type { Pool } from "../pool.ts";

/** An endpoint for tests of choosing only: it has a name and no connections. */
export function testEndpoint(name: string, capacity = 1, maxRequests?: number): Endpoint {
  return new Endpoint(name, { name, target: { limits: { maxRequests } } } as Pool, capacity);
}

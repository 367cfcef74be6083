import type { Pool } from "../../pools/pool.ts";
import { Endpoint } from "../endpoint.ts";

/** An endpoint for tests of choosing only: it has a name and no connections. */
export function testEndpoint(name: string, capacity = 1, maxRequests?: number): Endpoint {
  return new Endpoint(name, { name, target: { limits: { maxRequests } } } as Pool, capacity);
}

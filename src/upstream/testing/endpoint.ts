import { Endpoint } from "../endpoint.ts";
import type { Pool } from "../pool.ts";

/** An endpoint for those who only choose: it has a name and no connections. */
export function testEndpoint(name: string, capacity = 1): Endpoint {
  return new Endpoint(name, { name } as Pool, capacity);
}

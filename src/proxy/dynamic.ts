import type { Endpoint } from "../upstream/endpoint.ts";
import type { Endpoints } from "../upstream/endpoints.ts";

/** Targets of `dynamic` backends that are kept; the least recently made is given up beyond this. */
const MAX_TARGETS = 1024;

/** A forward proxy's targets: the request's own authority, port 80 when it names none (reference 1.7). */
export function dynamicEndpoints(endpoints: Endpoints): (authority: string) => Endpoint | undefined {
  const known = new Map<string, Endpoint>();
  return (authority) => {
    let endpoint = known.get(authority);
    if (endpoint !== undefined) return endpoint;
    let url: URL;
    try {
      url = new URL(`http://${authority}/`);
    } catch {
      return undefined;
    }
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (host === "") return undefined;
    endpoint = endpoints.acquire({ host, port: url.port === "" ? 80 : Number(url.port) }, 1, "dynamic");
    known.set(authority, endpoint);
    const oldest = known.size > MAX_TARGETS ? known.entries().next().value : undefined;
    if (oldest !== undefined) {
      known.delete(oldest[0]);
      endpoints.release([oldest[1]]);
    }
    return endpoint;
  };
}

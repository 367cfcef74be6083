import type { Endpoint } from "../upstream/endpoint.ts";
import type { Endpoints } from "../upstream/endpoints.ts";

/** Targets of `dynamic` backends that are kept; the least recently made is given up beyond this. */
const MAX_TARGETS = 1024;
const HAS_PORT = /:\d+$/;

/** A forward proxy's targets: an authority, which is that of the request unless said otherwise (reference 1.7). */
export function dynamicEndpoints(endpoints: Endpoints): (authority: string, port: number) => Endpoint | undefined {
  const known = new Map<string, Endpoint>();
  return (authority, defaultPort) => {
    const name = HAS_PORT.test(authority) ? authority : `${authority}:${defaultPort}`;
    let endpoint = known.get(name);
    if (endpoint !== undefined) return endpoint;
    let url: URL;
    try {
      url = new URL(`http://${name}/`);
    } catch {
      return undefined;
    }
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (host === "") return undefined;
    endpoint = endpoints.acquire({ host, port: url.port === "" ? 80 : Number(url.port) }, 1, "dynamic");
    known.set(name, endpoint);
    const oldest = known.size > MAX_TARGETS ? known.entries().next().value : undefined;
    if (oldest !== undefined) {
      known.delete(oldest[0]);
      endpoints.release([oldest[1]]);
    }
    return endpoint;
  };
}

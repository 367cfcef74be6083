import { ms } from "../../base/durations.ts";
import type { ProbeResult, ProbeSent } from "../../telemetry/probe-result.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import type { HealthCheck } from "../endpoints/health-check.ts";
import type { Pools } from "../pools/pools.ts";
import { Probe } from "./probe.ts";

/** Somebody waits for the result, so it is not waited for longer, whatever the check allows. */
const MOST = ms(5000);
/** Characters of a reason at most: part of it may come from a server. */
const REASON = 200;

const CONNECTION: HealthCheck = {
  settings: { tcp: {}, interval: MOST, timeout: MOST, unhealthyThreshold: 1, healthyThreshold: 1 },
  identity: "",
  prepare: undefined,
};

/** Probes an endpoint once, by its check or with a connection. Its state stays as it is. */
export async function probeOnce(endpoint: Endpoint, pools: Pools, check = CONNECTION): Promise<ProbeResult> {
  const { settings } = check;
  const bounded = { ...check, settings: { ...settings, timeout: ms(Math.min(settings.timeout, MOST)) } };
  const probe = new Probe(endpoint.pool.target, bounded, pools);
  const startedAt = performance.now();
  try {
    const { failure, status } = await probe.run(() => undefined);
    return {
      address: probe.address,
      sent: sentBy(check, endpoint),
      healthy: failure === undefined,
      ...(status !== undefined && { status }),
      ...(failure !== undefined && { reason: failure.slice(0, REASON) }),
      duration: performance.now() - startedAt,
    };
  } finally {
    probe.close();
  }
}

function sentBy({ settings: { http, grpc } }: HealthCheck, { pool }: Endpoint): ProbeSent {
  if (http !== undefined) {
    const [path = ""] = http.path.split("?");
    return { type: "http", path, ...(http.host !== undefined && { host: http.host }) };
  }
  if (grpc !== undefined) return { type: "grpc", service: grpc.service };
  return { type: pool.target.tls === undefined ? "tcp" : "tls" };
}

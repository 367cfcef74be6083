import type { z } from "zod";
import { defined, type Resolver, resolveEach } from "../resolver.ts";
import type { RemoteRateLimit, RemoteRateLimitInput, schema } from "./schema.ts";

/** `remoteRateLimit` with its service. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver) {
  return resolveEach<RemoteRateLimitInput, RemoteRateLimit>(written, resolver, resolveOne);
}

function resolveOne(written: RemoteRateLimitInput, resolver: Resolver): RemoteRateLimit {
  const { host, service, backend, policies, timeout, ...others } = written;
  return defined({ ...resolver.service({ host, service, backend, policies, timeout }, "grpc"), ...others });
}

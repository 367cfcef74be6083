import type { z } from "zod";
import { defined, type Resolver, resolveEach } from "../resolver.ts";
import type { ExtAuthz, ExtAuthzInput, schema } from "./schema.ts";

/** `extAuthz` with its service. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver) {
  return resolveEach<ExtAuthzInput, ExtAuthz>(written, resolver, resolveOne);
}

function resolveOne(written: ExtAuthzInput, resolver: Resolver): ExtAuthz {
  const { host, service, backend, policies, timeout, ...others } = written;
  const protocol = "http" in others.protocol ? "http" : "grpc";
  return defined({ ...resolver.service({ host, service, backend, policies, timeout }, protocol), ...others });
}

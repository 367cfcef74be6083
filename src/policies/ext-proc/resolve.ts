import type { z } from "zod";
import { defined, type Resolver, resolveEach } from "../resolver.ts";
import type { ExtProc, ExtProcInput, schema } from "./schema.ts";

/** `extProc` with its service. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver) {
  return resolveEach<ExtProcInput, ExtProc>(written, resolver, resolveOne);
}

function resolveOne(written: ExtProcInput, resolver: Resolver): ExtProc {
  const { host, service, backend, policies, timeout, ...others } = written;
  return defined({ ...resolver.service({ host, service, backend, policies, timeout }, "grpc"), ...others });
}

import { z } from "zod";
import { defined, type Resolver } from "../contract/resolver.ts";
import type { CalledService } from "../schema/call.ts";
import { service } from "../schema/fields.ts";

const { host, service: entry, backend } = service;

const mirror = z
  .strictObject({
    backend: z
      .strictObject({ host, service: entry, backend })
      .describe("Destination of the copies: one of `host`, `service` and `backend`."),
    percentage: z.number().min(0).max(1).describe("Share of requests to copy, from 0 to 1."),
  })
  .meta({ id: "Mirror", description: "A destination of copies." });

export const schema = z
  .union([mirror, z.array(mirror).min(1)])
  .describe(
    "Sends copies of requests to other backends, with bodies up to `maxBufferSize`. Requests do not wait for responses to copies, which are discarded; failures are logged.",
  );

/** A destination of copies. */
export type Mirror = CalledService & Pick<z.output<typeof mirror>, "percentage">;
/** Each target samples requests independently. */
export type RequestMirror = readonly Mirror[];

/** Looks up the targets of one mirror or of a list. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver): RequestMirror {
  const place = ({ backend, percentage }: Exclude<typeof written, readonly unknown[]>, at: Resolver) =>
    defined({ ...at.copies(["backend"], backend), percentage });
  return Array.isArray(written)
    ? written.map((each, i) => place(each, resolver.within(i)))
    : [place(written, resolver)];
}

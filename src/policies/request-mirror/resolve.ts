import type { z } from "zod";
import { defined, type Resolver } from "../resolver.ts";
import type { RequestMirror, schema } from "./schema.ts";

/** One place, or a list of them. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver): RequestMirror {
  const place = ({ backend, percentage }: Exclude<typeof written, readonly unknown[]>, at: Resolver) =>
    defined({ ...at.copies(["backend"], backend), percentage });
  return Array.isArray(written)
    ? written.map((each, i) => place(each, resolver.within(i)))
    : [place(written, resolver)];
}

import type { z } from "zod";
import { defined, type Resolver } from "../resolver.ts";
import type { BasicAuth, schema } from "./schema.ts";

/** With the list of users as text. */
export function resolve({ htpasswd, ...others }: z.output<typeof schema>, resolver: Resolver): BasicAuth {
  return defined({ htpasswd: resolver.text(["htpasswd"], htpasswd), ...others });
}

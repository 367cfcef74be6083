import type { z } from "zod";
import { defined, type Resolver } from "../resolver.ts";
import type { JwtAuth, schema } from "./schema.ts";

/** With the key sets as text. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver): JwtAuth {
  const { jwks, providers } = written;
  return defined({
    ...written,
    jwks: jwks === undefined ? undefined : resolver.text(["jwks"], jwks),
    providers: providers?.map((provider, i) =>
      defined({ ...provider, jwks: resolver.text(["providers", i, "jwks"], provider.jwks) }),
    ),
  });
}

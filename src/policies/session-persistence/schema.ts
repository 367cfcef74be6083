import { z } from "zod";
import { FRAMING } from "../contract/header-edits.ts";
import { duration } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";

const lifetime = duration.refine((time) => time > 0, { message: "must be longer than 0s; leave it out for no limit" });

export const schema = z
  .strictObject({
    type: z
      .enum(["Cookie", "Header"])
      .default("Cookie")
      .describe(
        "`Cookie`: browsers keep the session. `Header`: the client copies the header of the response into its next requests.",
      ),
    sessionName: z
      .string()
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, {
        message: "is not a name of a cookie or header; use letters, digits, - and _",
      })
      .max(128)
      .optional()
      .describe(
        "Name of the cookie or header. Default: for cookies `tracegate_session_` and a hash of the route, for headers `x-tracegate-session`.",
      ),
    absoluteTimeout: lifetime
      .optional()
      .describe("A session ends after this time, even if it is in use. Default: no limit."),
    idleTimeout: lifetime
      .optional()
      .describe("A session ends after this time without use; every response renews it. Default: no limit."),
    cookieConfig: z
      .strictObject({
        lifetimeType: z
          .enum(["Session", "Permanent"])
          .default("Session")
          .describe(
            "`Session`: the browser drops the cookie when it closes. `Permanent`: the cookie has a `Max-Age`, the rest of `absoluteTimeout`.",
          ),
      })
      .optional()
      .describe("Only for `type: Cookie`."),
  })
  .refine(({ type, cookieConfig }) => type === "Cookie" || cookieConfig === undefined, {
    path: ["cookieConfig"],
    message: "is only for type Cookie; remove it",
  })
  .refine(({ type, sessionName = "" }) => type === "Cookie" || !FRAMING.has(sessionName.toLowerCase()), {
    path: ["sessionName"],
    message: "frames the message or belongs to one connection; choose another header, such as x-session",
  })
  .refine(
    ({ cookieConfig, absoluteTimeout }) => cookieConfig?.lifetimeType !== "Permanent" || absoluteTimeout !== undefined,
    {
      path: ["cookieConfig"],
      message: "lifetimeType Permanent needs absoluteTimeout, which becomes the lifetime of the cookie",
    },
  )
  .describe(
    "Sends all requests of a client's session to the endpoint that served the first one (GEP-1619), across weighted backends too. The session is a cookie or header that only the gateway can read and make: it names the endpoint, encrypted, and is bound to the route. If the endpoint is gone, evicted or full, or the session has expired or was changed, the request is balanced as usual and gets a new session, as do retries. The cookie is `HttpOnly`, `SameSite=Strict`, `Secure` over https, and its `Path` is that of the route's match, or `/` if its name begins with `__Host-`. Workers share the key; replicas do if the environment variable OIDC_COOKIE_SECRET is the same, as it is in Kubernetes. Without that variable, sessions end with the process.",
  );

export type SessionPersistence = ConfigOf<typeof schema>;

import { isIP } from "node:net";
import { RE2JS } from "re2js";
import { z } from "zod";
import { messageOf } from "../../base/errors.ts";
import { parseNetwork } from "../../base/ip-address.ts";
import { parseListenAddress } from "../../base/listen-address.ts";
import { patternProblem } from "../../base/pattern-problem.ts";
import { isToken } from "../../http/message/syntax.ts";
import { parseTarget, type TargetParts } from "../../http/message/target.ts";
import { FRAMING } from "../../policies/contract/header-edits.ts";
import { celText } from "../../policies/schema/cel.ts";
import { checking } from "../../policies/schema/checks.ts";
import { CIPHER_SUITES } from "../../tls/tls-ciphers.ts";
import { DynamicTarget } from "../../upstream/destinations/dynamic.ts";

export const port = z.int().min(0).max(65535).describe("TCP or UDP port. 0 lets the system choose one.");

export const tlsVersion = z.enum(["TLS_V1_2", "TLS_V1_3"]);

export const cipherSuites = z
  .array(z.enum(CIPHER_SUITES))
  .min(1)
  .describe(
    "Cipher suites to offer. If the list has none of TLS 1.2, TLS 1.2 is not offered. If it has none of TLS 1.3, TLS 1.3 is offered with its default suites, unless the newest TLS version is set to 1.2. Default: those of the Node.js runtime, AES-128 before AES-256.",
  );

export const keyExchangeGroups = z
  .array(z.enum(["X25519", "P-256", "P-384", "X25519_MLKEM768"]))
  .min(1)
  .describe("Key exchange groups to offer, in order of preference. Default: those of the Node.js runtime.");

/** `off`, `unix:/path`, `localhost:PORT`, `IP:PORT`. */
export const listenAddress = z
  .string({
    error: ({ input }) =>
      typeof input === "number"
        ? `localhost:${input}, or 0.0.0.0:${input} for all addresses`
        : "an address such as localhost:15000",
  })
  .transform((text, context) => {
    try {
      return parseListenAddress(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: messageOf(error) });
      return z.NEVER;
    }
  })
  .meta({ title: "address", description: "`off`, `unix:/path`, `localhost:PORT`, `IP:PORT` or `[IPv6]:PORT`." });

/** An IP address, or a network in CIDR notation. */
export const network = z
  .string()
  .refine((text) => parseNetwork(text) !== undefined, {
    message: "not an IP address or network; write one such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32",
  })
  .meta({ title: "network", description: "IP address, or network in CIDR notation." });

/** As browsers send it in `Origin`. */
export const webOrigin = z
  .string()
  .refine((text) => /^https?:/.test(text) && URL.parse(text)?.origin === text, {
    message: "not an origin; write scheme, host and port as browsers do, such as http://localhost:3000",
  })
  .meta({ title: "origin", description: "Origin of web pages, such as `http://localhost:3000`." });

/** A header that the gateway may set in every request. */
export const requestIdHeader = z
  .string()
  .check(
    checking((name) => {
      const lower = name.toLowerCase();
      const taken = lower === "host" || lower === "forwarded" || lower.startsWith("x-forwarded-") || FRAMING.has(lower);
      if (taken) return "the gateway uses this header for something else; choose another name";
      return isToken(name) ? undefined : "not a header name";
    }),
  )
  .transform((name) => name.toLowerCase())
  .meta({ title: "header name", description: "Name of a header." });

/** A regular expression in RE2 syntax: matching takes linear time. */
export const regex = z
  .string()
  .check(
    checking((text) => {
      try {
        RE2JS.compile(text);
        return undefined;
      } catch (error) {
        return `not a regular expression: ${patternProblem(error)}`;
      }
    }),
  )
  .meta({
    title: "regular expression",
    description: "Regular expression in RE2 syntax. It must match the whole value.",
  });

/** `*`, a host name, or a wildcard such as `*.example.com`. */
export const hostname = z
  .string()
  .regex(
    /^(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*|\[[0-9a-fA-F:.]+\]|)$/,
    {
      message: "not a host name: write a name, `*.` and a name, or `*`; without scheme, port or path",
    },
  )
  .meta({ title: "host name", description: "Host name, wildcard such as `*.example.com`, or `*`." });

/** A host name that must not be empty: for routes, where an empty list means any host. */
export const routeHostname = hostname.min(1, { message: "must not be empty; leave hostnames out to match every host" });

/** A path of a request; one that a request could not have would match nothing. */
export const pathText = z
  .string()
  .regex(/^\//, { message: "a path begins with /", abort: true })
  .check(
    checking((path) => {
      const parts: TargetParts = { authority: "", path: "", search: "", scheme: "http" };
      const error = parseTarget("GET", path, "host", 1, parts);
      if (error !== undefined)
        return `no request has this path: ${error.detail}; percent-encode what a URL cannot hold`;
      return parts.search === "" ? undefined : "a path has no query; match parameters with query";
    }),
  );

/** CEL that gives `host:port`. */
export const dynamicTarget = (scope: "request" | "network") =>
  celText((text, cel) => new DynamicTarget(text, scope, cel));

/** `forward`, or a path that replaces that of the request. */
export const internalPath = z
  .string()
  .regex(/^(forward$|\/)/, { message: "write forward, or a path such as /metrics", abort: true })
  .check(
    checking((text) =>
      text === "forward" ? [] : (pathText.safeParse(text).error?.issues ?? []).map(({ message }) => message),
    ),
  );

const PSEUDO_HEADERS = [":method", ":scheme", ":authority", ":path"];

/** Name of a header, or of a pseudo header of requests. */
export const fieldName = z.string().check(
  checking((name) => {
    if (!name.startsWith(":")) return isToken(name) ? undefined : "not a header name";
    return PSEUDO_HEADERS.includes(name) ? undefined : `not a pseudo header of a request: ${PSEUDO_HEADERS.join(", ")}`;
  }),
);

/** An address of version 4 or 6, without port. */
export const ipAddress = z
  .string()
  .refine((text) => isIP(text) !== 0, { message: "not an IP address" })
  .describe("IP address.");

/** Names become parts of keys, which are separated by slashes. */
export const objectName = z
  .string()
  .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/, {
    message: "not a name: use letters, digits, `-`, `_` and `.`",
  })
  .meta({ title: "name" });

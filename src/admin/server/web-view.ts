/** The files of the web view, which `npm run build` makes from `ui/`. */
import type { IncomingHttpHeaders } from "node:http";
import { extname } from "node:path";
import { readAppFile } from "../../base/app-files.ts";
import { type PlainReply, textReply } from "./reply.ts";

/** Below the package. */
export const WEB_VIEW_FOLDER = "dist/ui";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json",
};

/**
 * The page runs only its own files and talks only to its own server. A style is set by script on elements, which the policy does not
 * restrict, and never by text.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
  vary: "Accept-Encoding, Origin",
};

/**
 * A file of the view, compressed if the client takes that; `name` empty: its page. Files are read when they are asked for, so that a
 * gateway without a view open keeps nothing of it in memory.
 */
export function webViewFile(name: string, { "accept-encoding": accepted = "" }: IncomingHttpHeaders): PlainReply {
  const file = name === "" ? "index.html" : name;
  const type = TYPES[extname(file)];
  // No separators: the name stays in the folder.
  if (type === undefined || !/^[\w-]+\.\w+$/.test(file)) return textReply(404, `the web view has no file ${name}\n`);
  const compressed = /(^|[\s,])gzip\s*(,|;(?!\s*q=0(\.0*)?\s*(,|$))|$)/.test(String(accepted));
  const body = readAppFile(`${WEB_VIEW_FOLDER}/${file}${compressed ? ".gz" : ""}`);
  if (body === undefined) {
    const why = file === "index.html" ? "is not built: run `npm run build` in the checkout" : `has no file ${file}`;
    return textReply(404, `the web view ${why}\n`);
  }
  return {
    status: 200,
    type,
    body,
    headers: {
      ...HEADERS,
      // The names of all others have the hash of their content.
      "cache-control": file === "index.html" ? "no-cache" : "public, max-age=31536000, immutable",
      ...(compressed && { "content-encoding": "gzip" }),
    },
  };
}

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";

/** The files that may open connections or call something that does, and why. */
const OPENERS: Readonly<Record<string, string>> = {
  "src/net/connect.ts": "takes an AdmittedAddress",
  "src/net/udp-socket.ts": "takes an AdmittedAddress",
  "src/tls/tls-client.ts": "takes an AdmittedAddress",
  "src/net/node-internals.ts": "makes sockets to look at their properties, and connects none",
  "src/net/node-internals-tls.ts": "only compares with the class",
  "src/base/socket-file.ts": "asks whether a dead process has left the socket on which a server will listen",
  "src/admin/client/client-request.ts": "tgctl",
  "src/kube/connect.ts": "the API server, which the operator names",
  "src/kube/port-forward.ts": "the API server, which the operator names",
  "src/main/healthcheck.ts": "a process of its own",
  "src/main/take-over/launcher.ts": "a separate process, which asks a gateway of the same user",
  "src/rehearsal/client.ts": "TLS and HTTP/2 over streams in memory",
};

/** Ways to open a connection in Node.js. */
const WAYS: readonly RegExp[] = [
  /import \{[^}]*(?<!type )\b(?:connect|createConnection|Socket)\b[^}]*\} from "node:net"/,
  /import (?:\*|\w+) .*from "node:(?:net|tls|http|https|http2|dgram)"/,
  /import \{[^}]*(?<!type )\b(?:request|get|Agent)\b[^}]*\} from "node:https?"/,
  /import \{[^}]*(?<!type )\b(?:connect|TLSSocket)\b[^}]*\} from "node:(?:tls|http2)"/,
  /import \{[^}]*(?<!type )\bcreateSocket\b[^}]*\} from "node:dgram"/,
  /node(?:Tls|Net|Http2)\(\)\.connect\(|nodeDgram\(\)\.createSocket\(/,
  /new (?:WebSocket|EventSource)\(|globalThis\.fetch/,
];

test("connections are opened only by code that takes an admitted address or is listed with a reason", () => {
  const files = globSync("src/**/*.ts").filter(
    (file) => !/\.test\.ts$|\/(?:testing|fixtures)\//.test(file) && !file.startsWith("src/gen/"),
  );
  assert.ok(files.length > 500);
  const openers = files.filter((file) => {
    const text = readFileSync(file, "utf8").replaceAll(/^import type .*$/gm, "");
    // A file that calls `fetch` must be given one: connections of the global `fetch` bypass the check.
    const callsFetch = /(?<![.\w#])fetch\(/.test(text) && !/\bfetch(?:,| }|: (?:Token)?Fetch\b)/.test(text);
    return callsFetch || WAYS.some((way) => way.test(text));
  });
  assert.deepEqual(openers.sort(), Object.keys(OPENERS).sort());
});

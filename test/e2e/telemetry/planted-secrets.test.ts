/**
 * Every place of a request that can hold a secret against everything that the gateway shows of requests. A new place is a line of `PLACES`; a
 * new output must be in one of the tables below, or this test fails.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { ADMIN_ROUTES } from "../../../src/admin/routes/all.ts";
import { proxyGroup } from "../../../src/cli/commands/proxy/index.ts";
import { exportCommand } from "../../../src/cli/commands/proxy/trace/export.ts";
import { invoke } from "../../../src/cli/fixtures/invoke.ts";
import { LoginFlow } from "../../../src/policies/oidc/flow.ts";
import { DEPS } from "../../../src/policies/testing/context.ts";
import type { RecordAnswer } from "../../../src/recorder/records.ts";
import type { EXPORT_METHODS } from "../../../src/telemetry/otlp/messages.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { TestCollector } from "../../helpers/otlp/collector.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";

type Place = keyof typeof PLACES;

/** The places, each with what is put there: a header field, or what `WAYS` do. */
const PLACES = {
  // Header fields of the request.
  authorization: (secret: string) => ["x-forwarded-authorization", `Bearer ${secret}`],
  basic: (secret: string) => ["proxy-authorization", `Basic ${Buffer.from(`me:${secret}`).toString("base64")}`],
  cookie: (secret: string) => ["cookie", `theme=dark; sid=${secret}`],
  oidc: (secret: string) => ["cookie", `tracegate_oidc_session=${secret}`],
  key: (secret: string) => ["x-api-key", secret],
  configured: (secret: string) => ["x-tenant-pin", secret],
  referer: (secret: string) => ["referer", `https://me:${secret}@a.test/`],
  metadata: (secret: string) => ["x-session-token-bin", secret],
  // Elsewhere.
  query: undefined,
  segment: undefined,
  userinfo: undefined,
  claim: undefined,
  // None begins with another one, or with `oidc`: a secret that the gateway knows is redacted inside of others too.
  "access-token": undefined,
  "refresh-token": undefined,
  "id-token": undefined,
  body: undefined,
  trailer: undefined,
  "proxy-tlv": undefined,
  "set-cookie": undefined,
  location: undefined,
  "response-body": undefined,
  "response-trailer": undefined,
} as const satisfies Readonly<Record<string, ((secret: string) => readonly [string, string]) | undefined>>;

const MARKER = "pl4nted";
const secretOf = (place: Place): string => `${MARKER}-${place}`;
const OIDC_KEY = randomBytes(32);
const OIDC = {
  issuer: "https://id.test",
  authorizationEndpoint: "https://id.test/auth",
  tokenEndpoint: "https://id.test/token",
  endSessionEndpoint: "https://id.test/end",
  jwks: '{"keys":[]}',
  clientId: "gateway",
  clientSecret: `${MARKER}-client`,
  redirectURI: "http://a.test/callback",
  scopes: [],
  accessTokenHeader: "x-for-backend",
  logout: { path: "/logout" },
};
const FIELDS = [
  ...Object.entries(PLACES).flatMap(([place, field]) => (field === undefined ? [] : [field(secretOf(place as Place))])),
  ["cookie", oidcSession()] as const,
];
const TARGET =
  `/in;jsessionid=${secretOf("segment")}/http:%2F%2Fme:${secretOf("userinfo")}@shop.test/` +
  `?page=2&access_token=${secretOf("query")}`;
/** A PROXY header of version 2 with a TLV of an application (type 0xE0). */
const TLV = Buffer.from(secretOf("proxy-tlv"));
const PROXY = Buffer.concat([
  Buffer.from("0d0a0d0a000d0a515549540a2111", "hex"),
  Buffer.of(0, 12 + 3 + TLV.length),
  Buffer.from("c0000201c6336402dc0401bb", "hex"),
  Buffer.of(0xe0, 0, TLV.length),
  TLV,
]);

/** The cookie of a session of `oidc` with all its tokens. */
function oidcSession(): string {
  const provider = { tokenEndpointAuth: "clientSecretBasic", callbackNamesIssuer: false } as const;
  const { sessions } = new LoginFlow({ ...OIDC, ...provider }, OIDC_KEY, DEPS.fetch);
  const claims = { sub: "jo", exp: Math.floor(Date.now() / 1000) + 3600 };
  const [access, refresh, token] = [secretOf("access-token"), secretOf("refresh-token"), secretOf("id-token")];
  const session = sessions.begin({ id: { token, claims }, access, refresh, expiresIn: 3600 });
  const [cookie = ""] = sessions.issue(session, new Map());
  return cookie.slice(0, cookie.indexOf(";"));
}

/** How a request is sent. Each resolves with its status. */
const WAYS: Readonly<Record<string, (port: number, id: string, token: string) => Promise<number>>> = {
  "HTTP/1.1": async (port, id, token) => {
    const lines = [
      `POST ${TARGET} HTTP/1.1`,
      "Host: a.test",
      `X-Request-Id: ${id}`,
      `Authorization: Bearer ${token}`,
      "Transfer-Encoding: chunked",
      "TE: trailers",
      ...FIELDS.map(([name, value]) => `${name}: ${value}`),
    ];
    const body = secretOf("body");
    const content = `${body.length.toString(16)}\r\n${body}\r\n0\r\nx-api-secret: ${secretOf("trailer")}\r\n\r\n`;
    const client = await RawPeer.connect(port);
    client.send(PROXY);
    client.send(`${lines.join("\r\n")}\r\n\r\n${content}`);
    const response = await client.message();
    assert.ok(response.body.includes(secretOf("response-body")) && response.trailers.length > 0);
    client.socket.destroy();
    return statusOf(response);
  },
  "HTTP/2": (port, id, token) => overHttp2(port, TARGET, id, token, []),
  gRPC: (port, id, token) =>
    overHttp2(port, `/vault.Vault/Open;token=${secretOf("segment")}`, id, token, ["content-type", "application/grpc"]),
};

async function overHttp2(
  port: number,
  path: string,
  id: string,
  token: string,
  more: readonly string[],
): Promise<number> {
  const client = new H2Client(await RawPeer.connect(port));
  client.peer.send(PROXY);
  client.greet();
  const fields = ["x-request-id", id, "authorization", `Bearer ${token}`, "te", "trailers", ...more, ...FIELDS.flat()];
  client.request(1, "POST", fields, path);
  client.data(1, secretOf("body"), false);
  client.headers(1, ["x-api-secret", secretOf("trailer")]);
  const status = H2Client.status(await client.response(1));
  client.peer.socket.destroy();
  return status;
}

/** What has been seen of the requests, and where more of it can be read. */
interface Seen {
  readonly gateway: GatewayProcess;
  readonly collector: TestCollector;
  /** Of `/debug/trace` and of `/debug/follow`, as events of the server. */
  readonly traces: readonly string[];
  readonly followed: string;
  readonly ids: readonly string[];
  /** Another configuration, which refuses all these requests. */
  readonly changed: string;
}

const read = async ({ gateway }: Seen, path: string, init?: RequestInit): Promise<string> =>
  (await fetch(`${gateway.url("admin")}${path}`, init)).text();
const tgctl = async ({ gateway }: Seen, words: readonly string[], input = ""): Promise<string> => {
  const env = { TGCTL_ADMIN: gateway.url("admin").replace("http://", "") };
  const { code, stdout, stderr } = await invoke(words, input, env);
  // 1: the traces differ.
  assert.ok(code === 0 || (code === 1 && words.includes("diff")), `tgctl ${words.join(" ")}: ${stderr}`);
  return stdout + stderr;
};
const ofEach = async (seen: Seen, one: (id: string) => Promise<string>): Promise<string> =>
  (await Promise.all(seen.ids.map(one))).join("\n");
/** Trace files, as `--raw` writes them. */
const traceFiles = ({ traces }: Seen): string[] =>
  traces.map((text) =>
    text
      .split("\n")
      .flatMap((line) => (line.startsWith("data: ") ? [`${line.slice(6)}\n`] : []))
      .join(""),
  );
const ofFiles = async (seen: Seen, ...words: readonly string[]): Promise<string> =>
  (await Promise.all(traceFiles(seen).map((file) => tgctl(seen, words, file)))).join("\n");

type Output = (seen: Seen) => Promise<string> | string;
/** It shows nothing of requests, or cannot be read here: for which reason. */
interface Exempt {
  readonly because: string;
}

/** By the path of the admin server. */
const ADMIN: Readonly<Record<string, Output | Exempt>> = {
  "/": (seen) => read(seen, "/"),
  "/config_dump": (seen) => read(seen, "/config_dump"),
  "/config/difference": { because: "it shows lines of the configuration file, nothing of requests" },
  "/config/parts": (seen) => read(seen, "/config/parts?limit=1000&at=settings"),
  "/config/status": (seen) => read(seen, "/config/status"),
  "/debug/trace": ({ traces }) => traces.join(""),
  "/debug/follow": ({ followed }) => followed,
  "/explain": (seen) => ofEach(seen, (id) => read(seen, "/explain", { method: "POST", body: JSON.stringify({ id }) })),
  "/export": async (seen) => {
    const post = (body: object) => (format: string) =>
      read(seen, `/export?format=${format}`, { method: "POST", body: JSON.stringify(body) });
    const traces = traceFiles(seen).map((file) => ({
      events: file
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    }));
    const files = [...seen.ids.map((id) => ({ id })), ...traces].flatMap((each) => ["html", "har"].map(post(each)));
    return (await Promise.all(files)).join("\n");
  },
  "/expression": (seen) =>
    ofEach(seen, (id) =>
      read(seen, "/expression", { method: "POST", body: JSON.stringify({ id, expression: "variables()" }) }),
    ),
  "/expression/names": { because: "it has names only" },
  "/impact": (seen) => read(seen, "/impact", { method: "POST", body: seen.changed }),
  "/samples": (seen) => read(seen, "/samples"),
  "/overview": (seen) => read(seen, "/overview"),
  "/routes": (seen) => read(seen, "/routes"),
  "/routes/": async (seen) => {
    const { routes } = JSON.parse(await read(seen, "/routes")) as { routes: { key: string }[] };
    const all = routes.map(({ key }) => read(seen, `/routes/${encodeURIComponent(key)}`));
    return (await Promise.all(all)).join("\n");
  },
  "/backends": (seen) => read(seen, "/backends"),
  "/certificates": (seen) => read(seen, "/certificates"),
  "/backends/": async (seen) => {
    const { backends } = JSON.parse(await read(seen, "/backends")) as { backends: { shown: { key: string }[] } };
    const all = backends.shown.map(({ key }) => read(seen, `/backends/${encodeURIComponent(key)}`));
    return (await Promise.all(all)).join("\n");
  },
  "/probe/": async (seen) => {
    const { backends } = JSON.parse(await read(seen, "/backends")) as { backends: { shown: { key: string }[] } };
    const [first] = backends.shown;
    return await read(seen, `/probe/${encodeURIComponent(first?.key ?? "")}`, { method: "POST" });
  },
  "/page-token": { because: "it knows nothing of requests" },
  "/ui": { because: "it has no data: what the view shows comes from the others" },
  "/ui/": { because: "it has no data: what the view shows comes from the others" },
  "/requests": (seen) => read(seen, "/requests?limit=1000"),
  "/requests/": (seen) => ofEach(seen, (id) => read(seen, `/requests/${id}`)),
  "/logging": (seen) => read(seen, "/logging"),
  "/memory": (seen) => read(seen, "/memory"),
  "/debug/tasks": (seen) => read(seen, "/debug/tasks"),
  "/debug/pprof/profile": { because: "it has names of functions only" },
  "/debug/pprof/heap": { because: "it has names of functions only" },
  "/quitquitquit": { because: "it ends the process" },
};

/** By the command of `tgctl proxy`. */
const COMMANDS: Readonly<Record<string, Output | Exempt>> = {
  trace: async (seen) => {
    const [first = "", second = ""] = traceFiles(seen);
    const file = join(seen.gateway.folder, "first.jsonl");
    await writeFile(file, first);
    return (await ofFiles(seen, "trace", "open", "-")) + (await tgctl(seen, ["trace", "diff", file, "-"], second));
  },
  explain: (seen) => ofEach(seen, (id) => tgctl(seen, ["explain", id])),
  eval: (seen) => ofEach(seen, (id) => tgctl(seen, ["eval", "variables()", "--scope", "record", "--id", id])),
  recent: async (seen) =>
    (await tgctl(seen, ["recent"])) +
    (await tgctl(seen, ["recent", "--errors", "--top"])) +
    (await tgctl(seen, ["recent", "-o", "jsonl"])) +
    (await ofEach(seen, (id) => tgctl(seen, ["recent", "--id", id]))),
  impact: async (seen) => {
    const file = join(seen.gateway.folder, "changed.yaml");
    await writeFile(file, seen.changed);
    return (
      (await tgctl(seen, ["impact", "--config", file])) +
      (await tgctl(seen, ["impact", "--config", file, "-o", "json"]))
    );
  },
  ui: { because: "it passes on answers of the admin server, and holds none" },
  status: (seen) => tgctl(seen, ["proxy", "status"]),
  routes: async (seen) => {
    const { routes } = JSON.parse(await read(seen, "/routes")) as { routes: { key: string }[] };
    const policies = routes.map(({ key }) => tgctl(seen, ["proxy", "routes", "--policies", key]));
    const lists = [tgctl(seen, ["proxy", "routes"]), tgctl(seen, ["proxy", "routes", "-o", "json"])];
    return (await Promise.all([...lists, ...policies])).join("\n");
  },
  backends: async (seen) =>
    (await tgctl(seen, ["proxy", "backends"])) + (await tgctl(seen, ["proxy", "backends", "-o", "json"])),
  certs: (seen) => tgctl(seen, ["proxy", "certs"]),
  config: async (seen) =>
    (await tgctl(seen, ["proxy", "config", "all"])) + (await tgctl(seen, ["proxy", "config", "all", "-o", "json"])),
  log: (seen) => tgctl(seen, ["proxy", "log"]),
  profile: { because: "it has names of functions only" },
};

/** By the signal of OpenTelemetry. */
const SIGNALS: Readonly<Record<keyof typeof EXPORT_METHODS, Output>> = {
  traces: ({ collector }) => exported(collector, "traces"),
  logs: ({ collector }) => exported(collector, "logs"),
};

const PROCESS: Readonly<Record<string, Output>> = {
  metrics: ({ gateway }) => gateway.metricsText(),
  log: ({ gateway }) => JSON.stringify(gateway.lines) + gateway.stderr,
};

function exported(collector: TestCollector, signal: keyof typeof EXPORT_METHODS): string {
  return JSON.stringify(
    collector.exports.filter((each) => each.signal === signal),
    (_key, value) => (typeof value === "bigint" ? String(value) : value),
  );
}

/** The server behind the gateway, which has secrets of its own. `received`: what has reached it. */
async function startBackend(): Promise<{ port: number; received: string[]; close(): void }> {
  const received: string[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    let body = "";
    request.on("data", (bytes: Buffer) => {
      body += bytes.toString();
    });
    request.on("end", () => {
      received.push(`${request.url} ${JSON.stringify(request.headers)} ${body} ${JSON.stringify(request.trailers)}`);
      response.writeHead(200, {
        "set-cookie": `sid=${secretOf("set-cookie")}`,
        location: `/cb?code=${secretOf("location")}`,
        trailer: "x-api-secret",
      });
      response.write(secretOf("response-body"));
      response.addTrailers({ "x-api-secret": secretOf("response-trailer") });
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { port: (server.address() as AddressInfo).port, received, close };
}

/** `refusing`: with a rule that denies all requests. */
function config(backendPort: number, collectorPort: number, jwks: string, refusing = false): object {
  // `variables()` would have the bodies too: whoever asks for them gets them.
  const everything = "[request.headers, request.uri, request.pathAndQuery, source, jwt, response.headers]";
  const exporter = { host: `127.0.0.1:${collectorPort}`, protocol: "http" };
  return {
    config: { sensitiveHeaders: ["x-tenant-pin"], logging: { level: "info,policy=debug" } },
    frontendPolicies: {
      proxyProtocol: { version: "v2" },
      tracing: { ...exporter, randomSampling: true, attributes: { everything } },
      accessLog: { add: { everything }, otlp: { ...exporter, fields: { add: { everything } } } },
    },
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              {
                name: "vault",
                matches: [{ path: { pathPrefix: "/vault.Vault" } }],
                policies: {
                  authorization: { rules: [{ deny: 'request.headers["x-api-key"] != "" && request.uri != ""' }] },
                },
                backends: [{ host: `127.0.0.1:${backendPort}` }],
              },
              {
                name: "all",
                policies: {
                  oidc: OIDC,
                  jwtAuth: { mode: "strict", issuer: "me", jwks },
                  authorization: { rules: refusing ? [{ deny: "true" }] : [] },
                },
                backends: [{ host: `127.0.0.1:${backendPort}`, policies: { http: { version: "HTTP/1.1" } } }],
              },
            ],
          },
        ],
      },
    ],
  };
}

/** Opens `/debug/<stream>`, and returns the promise of all that it sends. */
async function open(gateway: GatewayProcess, path: string): Promise<() => Promise<string>> {
  const response = await fetch(`${gateway.url("admin")}${path}`);
  const text = response.text();
  return () => text;
}

suite("planted secrets", () => {
  test("every output of the gateway is known to this test", () => {
    const names = (tables: readonly object[]): string[] => tables.flatMap(Object.keys).sort();
    const routes = ADMIN_ROUTES.map(({ path }) => path).sort();
    assert.deepEqual(names([ADMIN]), routes, "an endpoint of the admin server is missing in ADMIN, or is gone");
    const commands = proxyGroup(() => Promise.reject(new Error("no terminal")))
      .commands.map(({ name }) => name)
      .sort();
    assert.deepEqual(names([COMMANDS]), commands, "a command of tgctl is missing in COMMANDS, or is gone");
  });

  test("no secret of a request or of a response is in any output, however the request arrives", async (t) => {
    const backend = await startBackend();
    t.after(backend.close);
    await using collector = await TestCollector.http();
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "1" }] });
    const token = await new SignJWT({ refresh_token: secretOf("claim"), plan: "gold" })
      .setProtectedHeader({ alg: "ES256", kid: "1" })
      .setIssuer("me")
      .setExpirationTime("1h")
      .sign(privateKey);
    await using gateway = await GatewayProcess.start(config(backend.port, collector.port, jwks), {
      env: { OIDC_COOKIE_SECRET: OIDC_KEY.toString("hex") },
    });
    const ways = Object.entries(WAYS);
    const follow = await open(gateway, `/debug/follow?candidates=true&count=${ways.length}`);
    const traces: string[] = [];
    const ids: string[] = [];
    for (const [way, send] of ways) {
      const trace = await open(gateway, "/debug/trace?bodies=0");
      const id = `planted-${ids.push(way)}`;
      assert.equal(await send(gateway.port(), id, token), 200, way);
      ids[ids.length - 1] = id;
      traces.push(await trace());
    }
    for (const place of ["query", "access-token"] as const)
      assert.ok(backend.received[0]?.includes(secretOf(place)), `the backend gets the secret: ${place}`);
    const changed = JSON.stringify(config(backend.port, collector.port, jwks, true));
    const seen: Seen = { gateway, collector, traces, followed: await follow(), ids, changed };
    const recorded = async (): Promise<number> => (JSON.parse(await read(seen, "/requests")) as RecordAnswer).found;
    while ((await recorded()) < ways.length) await new Promise(setImmediate);
    await collector.until(({ length }) => length >= 2 * ways.length);
    await gateway.until(
      () => gateway.lines.filter((line) => "http.path" in line).length >= ways.length,
      "the log lines",
    );

    const { format } = exportCommand.options;
    const formats = format?.type === "text" ? (format.choices ?? []) : [];
    assert.ok(formats.length >= 3);
    const exports = Object.fromEntries(
      formats.map((format): [string, Output] => [
        `trace export --format ${format}`,
        () => ofFiles(seen, "trace", "export", "--format", format, "-"),
      ]),
    );
    const files: Output = () => traceFiles(seen).join("");
    const outputs = { ...ADMIN, ...COMMANDS, ...SIGNALS, ...PROCESS, ...exports, "trace files": files };
    const leaks: string[] = [];
    const shown: Record<string, string> = {};
    for (const [name, output] of Object.entries(outputs)) {
      if (typeof output !== "function") continue;
      const text = await output(seen);
      shown[name] = text;
      assert.ok(text.length > 20, `${name} has content: ${text}`);
      for (const { index } of text.matchAll(LEAK))
        leaks.push(`${name}: …${text.slice(Math.max(0, index - 120), index + 40)}…`);
      if (text.includes(token.slice(token.indexOf(".") + 1))) leaks.push(`${name}: the token`);
    }
    assert.deepEqual(leaks, []);
    // Those that have something to say about these requests have said it.
    assert.match(shown["/impact"] ?? "", /refused/);
    assert.match(shown["/samples"] ?? "", /x-api-key/);
    assert.match(shown["/explain"] ?? "", /authorization/);
    for (const name of ["/requests", "recent", "log", "traces", "logs", "/debug/follow"])
      assert.ok(/\/in;jsessionid=<redacted>|jsessionid=%3Credacted/.test(shown[name] ?? ""), `${name}: ${shown[name]}`);
  });
});

/** The marker as it is, and in base64 at each of the three places that its first character can have in a group. */
const LEAK = new RegExp(
  [
    MARKER,
    ...["", "x", "xx"].map((before, skip) =>
      Buffer.from(before + MARKER)
        .toString("base64")
        .slice(skip + 1, 8),
    ),
  ].join("|"),
  "g",
);

/** The servers that the suite tests: gateways, each with a server of the suite behind it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { delimited, GRPC, HTTP_VERSION_2, readDelimited, readLine, ServerRequest, ServerResponse } from "./messages.ts";

const HOST = "127.0.0.1";

/** Which gateway a relay stands for. */
export interface Wanted {
  /** Path of the program behind it. */
  readonly server: string;
  /** `translate`: that speaks gRPC only, and the policy `grpcWeb` translates; `pass`: it speaks what clients speak. */
  readonly mode: "pass" | "translate";
}

/** Starts a gateway for each relay that connects to the socket `path`; it stops when the relay goes. */
export async function listenForRelays(path: string): Promise<Server> {
  const server = createServer((relay) => {
    relay.on("error", () => {});
    serve(relay).catch((error: unknown) => {
      process.stderr.write(`connect: a gateway did not start: ${error}\n`);
      relay.destroy();
    });
  });
  server.listen(path);
  await once(server, "listening");
  return server;
}

async function serve(relay: Socket): Promise<void> {
  const gone = once(relay, "close");
  const wanted = JSON.parse(await readLine(relay)) as Wanted;
  const request = ServerRequest.decode(await readDelimited(relay));
  const folder = mkdtempSync(join(tmpdir(), "tracegate-connect-"));
  const backend = await startBackend(wanted, request);
  try {
    await using gateway = await LocalGateway.start(configuration(wanted, request, backend.port, folder));
    const pem_cert = request.server_creds?.cert ?? new Uint8Array();
    relay.write(delimited(ServerResponse.encode({ host: HOST, port: gateway.port(), pem_cert })));
    relay.resume();
    await gone;
  } finally {
    backend.process.kill();
    rmSync(folder, { recursive: true });
  }
}

async function startBackend(
  { server, mode }: Wanted,
  request: ServerRequest,
): Promise<{ readonly process: ChildProcess; readonly port: number }> {
  const child = spawn(server, ["-bind", HOST], { stdio: ["pipe", "pipe", "inherit"] });
  const { message_receive_limit = 0 } = request;
  const { protocol = 0, http_version = 0 } =
    mode === "translate" ? { protocol: GRPC, http_version: HTTP_VERSION_2 } : request;
  child.stdin.end(delimited(ServerRequest.encode({ protocol, http_version, message_receive_limit })));
  const { port = 0 } = ServerResponse.decode(await readDelimited(child.stdout));
  return { process: child, port };
}

/** The backend is called by the version of HTTP that the client uses, except where that is translated. */
function configuration({ mode }: Wanted, request: ServerRequest, port: number, folder: string): object {
  const translated = mode === "translate";
  const http2 = translated || request.http_version === HTTP_VERSION_2;
  const policies = { http: { version: http2 ? "HTTP/2.0" : "HTTP/1.1" } };
  const route = { ...(translated && { policies: { grpcWeb: {} } }), backends: [{ host: `${HOST}:${port}`, policies }] };
  const tls = tlsFiles(request, folder);
  const listener = tls === undefined ? { protocol: "HTTP" } : { protocol: "HTTPS", tls };
  return { binds: [{ port: 0, listeners: [{ ...listener, routes: [route] }] }] };
}

/** The certificate is one that the runner has made. */
function tlsFiles(request: ServerRequest, folder: string): object | undefined {
  const { use_tls, server_creds, client_tls_cert = new Uint8Array() } = request;
  if (use_tls !== true || server_creds === undefined) return undefined;
  const file = (name: string, content: Uint8Array = new Uint8Array()): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const pair = { cert: file("cert.pem", server_creds.cert), key: file("key.pem", server_creds.key) };
  return client_tls_cert.length === 0 ? pair : { ...pair, root: file("root.pem", client_tls_cert) };
}

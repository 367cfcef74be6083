/**
 * The server that the runner of the suite tests: a gateway with the suite's own reference server behind it. The runner starts one
 * for each combination of protocol, version of HTTP and TLS, and says on the standard input what it needs.
 *
 *   node server.ts <reference server> pass       the backend speaks what the client speaks
 *   node server.ts <reference server> translate  the backend speaks gRPC only; the policy grpcWeb translates
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { delimited, GRPC, HTTP_VERSION_2, readDelimited, ServerRequest, ServerResponse } from "./messages.ts";

const HOST = "127.0.0.1";
const [program = "", mode = "pass"] = process.argv.slice(2);
const wanted = ServerRequest.decode(await readDelimited(process.stdin));
const directory = mkdtempSync(`${tmpdir()}/tracegate-connect-`);
const backend = await startBackend();
const gateway = await LocalGateway.start(configuration(backend.port));

process.on("SIGTERM", () => void stop());
const answer = { host: HOST, port: gateway.port(), pem_cert: wanted.server_creds?.cert ?? new Uint8Array() };
process.stdout.write(delimited(ServerResponse.encode(answer)));

async function startBackend(): Promise<{ readonly process: ChildProcess; readonly port: number }> {
  const child = spawn(program, ["-bind", HOST], { stdio: ["pipe", "pipe", "inherit"] });
  const { message_receive_limit = 0 } = wanted;
  const translated = { protocol: GRPC, http_version: HTTP_VERSION_2 };
  const { protocol = 0, http_version = 0 } = mode === "translate" ? translated : wanted;
  child.stdin.end(delimited(ServerRequest.encode({ protocol, http_version, message_receive_limit })));
  const { port = 0 } = ServerResponse.decode(await readDelimited(child.stdout));
  return { process: child, port };
}

function configuration(port: number): object {
  const translated = mode === "translate";
  const http2 = translated || wanted.http_version === HTTP_VERSION_2;
  const policies = { http: { version: http2 ? "HTTP/2.0" : "HTTP/1.1" } };
  const route = { ...(translated && { policies: { grpcWeb: {} } }), backends: [{ host: `${HOST}:${port}`, policies }] };
  const tls = tlsFiles();
  const listener = tls === undefined ? { protocol: "HTTP" } : { protocol: "HTTPS", tls };
  return { binds: [{ port: 0, listeners: [{ ...listener, routes: [route] }] }] };
}

/** The certificate is one that the runner has made. */
function tlsFiles(): object | undefined {
  const { server_creds, client_tls_cert = new Uint8Array() } = wanted;
  if (wanted.use_tls !== true || server_creds === undefined) return undefined;
  const file = (name: string, content: Uint8Array = new Uint8Array()): string => {
    writeFileSync(`${directory}/${name}`, content);
    return `${directory}/${name}`;
  };
  const pair = { cert: file("cert.pem", server_creds.cert), key: file("key.pem", server_creds.key) };
  return client_tls_cert.length === 0 ? pair : { ...pair, root: file("root.pem", client_tls_cert) };
}

async function stop(): Promise<void> {
  backend.process.kill();
  await Promise.all([once(backend.process, "exit"), gateway[Symbol.asyncDispose]()]);
  rmSync(directory, { recursive: true });
  process.exit();
}

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort, waitForPort } from "../lib/ports.ts";
import { Child, findProgram } from "../lib/proc.ts";
import type { Bench, Peer, ProxyOptions, RunningProxy } from "../lib/types.ts";

export const nginx: Peer = {
  name: "nginx",
  hint: "apt-get install nginx",
  find: () => findProgram("nginx"),
  start: (bench, program, options) =>
    startNginx(bench, program, "nginx", options.cpus, (port) => proxyBlocks(port, options)),
};

/**
 * nginx in the foreground with one worker, its files in a folder of its own, and `blocks` inside `http`. Keep-alive is
 * unlimited on both sides, as it is in the other proxies.
 */
export async function startNginx(
  bench: Bench,
  program: string,
  name: string,
  cpus: string | undefined,
  blocks: (port: number) => string,
): Promise<RunningProxy> {
  const port = await freePort();
  const folder = join(bench.folder, `${name}-${port}`);
  await mkdir(folder);
  const file = join(folder, "nginx.conf");
  await writeFile(file, nginxConfig(folder, blocks(port)));
  const child = new Child(name, [program, "-p", folder, "-c", file, "-e", "stderr"], {
    ...(cpus === undefined ? {} : { cpus }),
    stdout: "ignore",
    folder: bench.folder,
  });
  await waitForPort(port, child);
  return { name, port, child };
}

function nginxConfig(folder: string, blocks: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (use) => `${use}_temp_path ${folder}/${use};`,
  );
  return `daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr error;
events { worker_connections 16384; }
http {
  ${temporary.join("\n  ")}
  access_log off;
  tcp_nodelay on;
  sendfile on;
  keepalive_timeout 1h;
  keepalive_requests 1000000000;
  client_max_body_size 0;
  ${blocks}
}
`;
}

/** Bodies stream, as in the other proxies: without these two directives nginx spools them to disk. */
function proxyBlocks(port: number, { originPort, accessLog, tls, protocol }: ProxyOptions): string {
  return `upstream origin { server 127.0.0.1:${originPort}; keepalive 256; keepalive_requests 1000000000; keepalive_timeout 1h; }
  server {
    listen 127.0.0.1:${port} ${tls === undefined ? "" : "ssl"} ${protocol === "h2" ? "http2" : ""} backlog=4096;
    ${tls === undefined ? "" : `ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key};`}
    ${accessLog ? "access_log /dev/null combined;" : ""}
    proxy_request_buffering off;
    proxy_max_temp_file_size 0;
    location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }
    location = /stub_status { stub_status; }
  }`;
}

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort, waitForPort } from "../lib/ports.ts";
import { Child, findProgram } from "../lib/proc.ts";
import type { Peer, ProxyOptions } from "../lib/types.ts";

/** HAProxy in the foreground with one thread; its counters are always on. It passes TCP on by splice(2) where that is possible. */
export const haproxy: Peer = {
  name: "haproxy",
  hint: "apt-get install haproxy",
  find: () => findProgram("haproxy"),
  async start(bench, program, options) {
    const port = await freePort();
    const file = join(bench.folder, `haproxy-${port}.cfg`);
    await writeFile(file, config(port, options));
    const child = new Child("haproxy", [program, "-db", "-f", file], {
      ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
      stdout: "ignore",
      folder: bench.folder,
    });
    await waitForPort(port, child);
    return { name: "haproxy", port, child };
  },
};

function config(port: number, { originPort, accessLog, protocol }: ProxyOptions): string {
  return `global
  nbthread 1
  maxconn 4000
  ${accessLog ? "log stdout format raw local0" : ""}
defaults
  mode ${protocol === "tcp" ? "tcp\n  option splice-auto" : "http"}
  timeout connect 10s
  timeout client 1h
  timeout server 1h
  timeout http-keep-alive 1h
  ${protocol === "tcp" ? "" : "option http-keep-alive\n  http-reuse always"}
  ${accessLog ? "log global\n  option httplog" : ""}
frontend front
  bind 127.0.0.1:${port} backlog 4096${protocol === "h2" ? " proto h2" : ""}
  default_backend origin
backend origin
  server origin 127.0.0.1:${originPort}${protocol === "tcp" ? "" : " pool-purge-delay 1h"}
`;
}

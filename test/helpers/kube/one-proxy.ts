/** Objects of Kubernetes, translated, sent through the messages of the stream into a data plane, and requests to it. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type RequestListener, request, type Server } from "node:http";
import type { AddressInfo, Server as TcpServer } from "node:net";
import { parseAllDocuments } from "yaml";
import { LogOutput } from "../../../src/base/log.ts";
import { parseLogFilter } from "../../../src/base/log-filter.ts";
import { Documents } from "../../../src/controller/documents.ts";
import { type Anything, cluster } from "../../../src/controller/translate/fixtures/cluster.ts";
import { gatewayState } from "../../../src/controller/translate/gateway-state.ts";
import { type PackedIr, unpackIr } from "../../../src/ir/packed-ir.ts";
import { dumpIr } from "../../../src/main/config-dump.ts";
import { ANYWHERE } from "../../../src/net/testing/egress.ts";
import { ALONE } from "../../../src/proxy/ports/sharing.ts";
import { ResourceStore } from "../../../src/translation/resources/store.ts";
import type { Locality } from "../../../src/upstream/discovery/locality.ts";
import { TestPlane } from "../data-plane.ts";
import { packState } from "./pack-state.ts";

const GATEWAY = `
kind: Gateway
metadata: { name: web }
spec:
  gatewayClassName: tracegate
  listeners: [{ name: http, port: 8000, protocol: HTTP }, { name: tcp, port: 5000, protocol: TCP }]
`;

/** The Gateway `default/web` with one proxy, which has what the controller would send it. */
export class OneProxy implements AsyncDisposable {
  readonly #graph = cluster();
  readonly #documents: Documents;
  readonly #plane: TestPlane;
  #generation = 0;
  #packed: PackedIr | undefined;
  #published: Promise<void> = Promise.resolve();

  private constructor(locality: Locality) {
    this.#plane = new TestPlane({ locality, oidcCookieKey: randomBytes(32) });
    const output = new LogOutput(parseLogFilter("off"), "json", () => {});
    const changed = (): void => void this.#publish();
    this.#documents = new Documents({
      graph: this.#graph,
      changed,
      log: output.logger("tracegate/translator"),
      store: new ResourceStore(ANYWHERE),
    });
  }

  /** `locality`: what the proxy knows of where it runs. */
  static async start(objects: string, locality: Locality = {}): Promise<OneProxy> {
    const proxy = new OneProxy(locality);
    await proxy.apply(GATEWAY + objects);
    return proxy;
  }

  /** Creates or replaces objects. */
  async apply(objects: string): Promise<void> {
    const version = String(this.#generation + 1);
    for (const document of parseAllDocuments(objects)) {
      const { metadata, ...rest } = document.toJS() as { readonly metadata: object };
      const common = { namespace: "default", resourceVersion: version };
      this.#graph.set({ apiVersion: "", ...rest, metadata: { ...common, ...metadata } } as unknown as Anything);
    }
    await this.#publish();
  }

  /** The dump of the configuration, as if nothing had been called yet. */
  dump(): unknown {
    assert.ok(this.#packed !== undefined);
    const live = { ports: {}, endpoints: new Map(), calls: new Map(), locality: {}, hidden: new Set<string>() };
    return dumpIr(unpackIr(this.#packed), live);
  }

  port(bind = "bind/8000"): number {
    const tasks = this.#plane.plane.tasks() as { readonly bind: string; readonly port: number }[];
    return tasks.find((each) => each.bind === bind)?.port ?? 0;
  }

  /** The next line of the access log that contains `text`. */
  logged(text: string): Promise<Record<string, unknown>> {
    return this.#plane.logged(text);
  }

  /** `host` is a.test unless `headers` say otherwise. */
  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.send("GET", path, headers);
  }

  async send(method: string, path: string, headers: Record<string, string>, body?: Uint8Array): Promise<Answer> {
    return await new Promise((resolve, reject) => {
      const options = {
        host: "127.0.0.1",
        port: this.port(),
        method,
        path,
        agent: false,
        headers: { host: "a.test", ...headers },
      };
      request(options, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          const bytes = Buffer.concat(chunks);
          resolve({
            status: response.statusCode ?? 0,
            body: bytes.toString(),
            bytes,
            headers: response.headers,
            trailers: response.trailers,
            location: response.headers.location ?? "",
          });
        });
      })
        .on("error", reject)
        .end(body);
    });
  }

  /** The first matching response, for at most 10 s: the controller may have to fetch something first. */
  async getUntil(
    fits: (answer: Answer) => boolean,
    path: string,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const deadline = Date.now() + 10_000;
    for (;;) {
      const answer = await this.get(path, headers);
      if (fits(answer)) return answer;
      assert.ok(Date.now() < deadline, `the last answer: ${answer.status} ${answer.location} ${answer.body}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#documents.close();
    await this.#published;
    await this.#plane[Symbol.asyncDispose]();
  }

  /** One after the other, as a proxy applies them. */
  #publish(): Promise<void> {
    this.#published = this.#published.then(() => this.#apply());
    return this.#published;
  }

  async #apply(): Promise<void> {
    const state = this.#graph.query(gatewayState, "default/web");
    assert.ok(state !== undefined);
    this.#documents.update();
    const packed = packState(state);
    this.#packed = packed;
    const ports = Object.fromEntries(packed.frame.binds.map(({ key }) => [key, 0]));
    await this.#plane.plane.prepare(++this.#generation, packed, ports, ALONE);
    this.#plane.plane.commit();
  }
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly bytes: Buffer;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly trailers: NodeJS.Dict<string>;
  readonly location: string;
}

/** Servers of a test file, to be closed after it. */
export class Backends implements Disposable {
  readonly #servers: (Server | TcpServer)[] = [];

  /** Resolves with the port. */
  async listen(server: Server | TcpServer): Promise<number> {
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return (server.address() as AddressInfo).port;
  }

  [Symbol.dispose](): void {
    for (const server of this.#servers) server.close();
  }
}

/** A server that responds with its name, the path and one header of the request. */
export const echo =
  (name: string): RequestListener =>
  (incoming, response) =>
    response.end(`${name} ${incoming.url} ${incoming.headers["x-added"] ?? ""}`.trim());

/** A Service whose port 80 is a port of this machine. */
export function service(name: string, port: number, spec = ""): string {
  return `---
kind: Service
metadata: { name: ${name} }
spec: { ports: [{ name: web, port: 80 }]${spec} }
${slice(name, port)}`;
}

export function slice(name: string, port: number): string {
  return `---
kind: EndpointSlice
metadata: { name: ${name}, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ name: web, port: ${port} }]
endpoints: [{ addresses: [127.0.0.1], conditions: { ready: true } }]
`;
}

export function route(name: string, created: string, rules: string): string {
  return `---
kind: HTTPRoute
metadata: { name: ${name}, creationTimestamp: ${created} }
spec:
  parentRefs: [{ name: web, sectionName: http }]
  hostnames: [a.test]
  rules: ${rules}
`;
}

/** Pebble, the ACME server that Let's Encrypt tests clients with, and the DNS server that it asks. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { TestCa } from "../../helpers/certificates.ts";
import { freePorts } from "../../helpers/free-ports.ts";
import { goTool } from "./tools.ts";

const MODULE = "github.com/letsencrypt/pebble/v2/cmd";
const VERSION = "v2.10.3";

interface PebbleOptions {
  /** Where validations go. */
  readonly httpPort: number;
  readonly tlsPort: number;
  /** Seconds. Default: 90 days. */
  readonly lifetime?: number;
  /** Keys of accounts by their identifiers; with them, an account needs one. */
  readonly macKeys?: Readonly<Record<string, string>>;
  /** Percent of good nonces that are rejected, and of valid authorizations that are used again. */
  readonly rejectNonces?: number;
  readonly reuseAuthorizations?: number;
  /** Most seconds of a random wait before a validation. */
  readonly slow?: number;
}

/** Both programs must be there, or a ToolMissing says why. */
export function installPebble(): { readonly pebble: string; readonly dns: string } {
  return { pebble: goTool(`${MODULE}/pebble`, VERSION), dns: goTool(`${MODULE}/pebble-challtestsrv`, VERSION) };
}

export class Pebble {
  readonly directory: string;
  /** CA of the server's own certificate. */
  readonly root: string;
  /** Management of the DNS server: `/set-txt` and so on. */
  readonly dnsManagement: string;
  readonly #management: string;
  readonly #agent: Agent;
  readonly #children: readonly ChildProcess[];
  readonly #authority: TestCa;
  log = "";

  private constructor(ports: readonly number[], authority: TestCa, children: readonly ChildProcess[]) {
    const [acme, management, , dnsManagement] = ports;
    this.directory = `https://localhost:${acme}/dir`;
    this.#management = `https://localhost:${management}`;
    this.dnsManagement = `http://127.0.0.1:${dnsManagement}`;
    this.root = authority.certFile;
    this.#agent = new Agent({ ca: authority.cert });
    this.#children = children;
    this.#authority = authority;
    for (const child of children)
      for (const stream of [child.stdout, child.stderr])
        stream?.setEncoding("utf8").on("data", (text: string) => {
          this.log += text;
        });
  }

  static async start(options: PebbleOptions): Promise<Pebble> {
    const programs = installPebble();
    const authority = new TestCa("pebble");
    const { certFile, keyFile } = authority.issue("localhost");
    const ports = await freePorts(4);
    const [acme, management, dns, dnsManagement] = ports;
    const {
      httpPort,
      tlsPort,
      lifetime = 7_776_000,
      macKeys,
      rejectNonces = 0,
      reuseAuthorizations = 0,
      slow = 0,
    } = options;
    const config = join(authority.folder, "pebble.json");
    const pebble = {
      listenAddress: `127.0.0.1:${acme}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: certFile,
      privateKey: keyFile,
      httpPort,
      tlsPort,
      externalAccountBindingRequired: macKeys !== undefined,
      externalAccountMACKeys: macKeys ?? {},
      retryAfter: { authz: 1, order: 1 },
      keyAlgorithm: "ecdsa",
      profiles: { default: { description: "", validityPeriod: lifetime } },
    };
    writeFileSync(config, JSON.stringify({ pebble }));
    const env = {
      ...process.env,
      PEBBLE_WFE_NONCEREJECT: String(rejectNonces),
      PEBBLE_AUTHZREUSE: String(reuseAuthorizations),
      ...(slow === 0 ? { PEBBLE_VA_NOSLEEP: "1" } : { PEBBLE_VA_SLEEPTIME: String(slow) }),
    };
    const off = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""];
    const dnsArgs = [
      "-dnsserver",
      `127.0.0.1:${dns}`,
      "-management",
      `127.0.0.1:${dnsManagement}`,
      "-defaultIPv6",
      "",
      ...off,
    ];
    const children = [
      spawn(programs.dns, dnsArgs, { stdio: ["ignore", "pipe", "pipe"] }),
      spawn(programs.pebble, ["-config", config, "-dnsserver", `127.0.0.1:${dns}`], {
        env,
        stdio: ["ignore", "pipe", "pipe"],
      }),
    ];
    const server = new Pebble(ports, authority, children);
    for (let left = 100; left > 0; left--) {
      const up = await server.#ask("/roots/0").catch(() => undefined);
      if (up !== undefined) return server;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`Pebble does not start:\n${server.log}`);
  }

  /** The CA that certificates are issued under, PEM. */
  issuingRoot(): Promise<string> {
    return this.#ask("/roots/0");
  }

  /** Makes the server suggest this window for renewing a certificate. */
  async suggestRenewal(certificate: string, start: Date, end: Date): Promise<void> {
    const ariResponse = JSON.stringify({ suggestedWindow: { start, end } });
    await this.#ask("/set-renewal-info/", JSON.stringify({ certificate, ariResponse }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null) continue;
      child.kill();
      await once(child, "exit");
    }
    this.#agent.destroy();
    this.#authority[Symbol.dispose]();
  }

  #ask(path: string, body?: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const method = body === undefined ? "GET" : "POST";
      const call = request(`${this.#management}${path}`, { agent: this.#agent, method }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("end", () => {
          if (response.statusCode === 200) resolve(text);
          else reject(new Error(`${path}: ${response.statusCode} ${text}`));
        });
      });
      call.on("error", reject).end(body);
    });
  }
}

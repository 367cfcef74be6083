/**
 * npm run acme
 * Certificates from Pebble with its faults switched on: rejected nonces, slow validations, authorizations that are used again. All
 * challenges, accounts of customers, several processes with one storage, and renewals under load.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackage } from "../../scripts/bundle/install.ts";
import { messageOf } from "../../src/base/errors.ts";
import { freePorts } from "../helpers/free-ports.ts";
import { GatewayProcess } from "../helpers/gateway.ts";
import { installPebble, Pebble } from "./lib/pebble.ts";
import { runSuite } from "./lib/suite.ts";

const MAC_KEY = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
/** Seconds that a certificate is valid which is renewed under load, and renewals to wait for. */
const SHORT_LIFETIME = 40;
const RENEWALS = 3;
const MANY = 1000;
/** Starts that are timed. */
const STARTS = 5;

const ROUTES = [{ policies: { directResponse: { status: 200, body: "hello" } } }];
const issued = (gateway: GatewayProcess): string[] =>
  gateway.lines.flatMap(({ message, name }) => (message === "certificate issued" ? [String(name)] : []));

interface Site {
  readonly pebble: Pebble;
  readonly http: number;
  readonly tls: number;
  readonly storage: string;
}

/** A configuration with a listener for each name. */
function configOf({ pebble, http, tls, storage }: Site, listeners: Readonly<Record<string, object>>): object {
  const { directory, root } = pebble;
  const acme = { directory, root, storage };
  return {
    gateways: {
      plain: { port: http },
      secure: {
        port: tls,
        listeners: Object.entries(listeners).map(([hostname, more]) => ({
          hostname,
          tls: { acme: { ...acme, ...more } },
        })),
      },
    },
    routes: [{ gateways: ["plain", "secure"], ...ROUTES[0] }],
  };
}

/** A request over a connection of its own; rejects if the certificate is not trusted. */
async function ask(port: number, servername: string, ca: string): Promise<number> {
  const options = { host: "127.0.0.1", port, servername, ca, agent: false, headers: { host: servername } };
  const [response] = await once(httpsRequest(options).end(), "response");
  response.resume();
  return response.statusCode;
}

/** Waits until the reload has brought a certificate that was issued to the listener. */
async function served(port: number, name: string, ca: string): Promise<void> {
  const until = Date.now() + 20_000;
  for (;;) {
    const status = await ask(port, name, ca).catch(messageOf);
    if (status === 200) return;
    if (Date.now() > until) throw new Error(`${name} is not served: ${status}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function withSite(
  options: Omit<Parameters<typeof Pebble.start>[0], "httpPort" | "tlsPort">,
  run: (site: Site) => Promise<void>,
): Promise<void> {
  const [http = 0, tls = 0] = await freePorts(2);
  const storage = mkdtempSync(join(tmpdir(), "tracegate-acme-"));
  try {
    await using pebble = await Pebble.start({ ...options, httpPort: http, tlsPort: tls });
    await run({ pebble, http, tls, storage });
  } finally {
    rmSync(storage, { recursive: true, force: true });
  }
}

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1").unref();
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** The hook as a server, which passes records on to the DNS server of the tests. */
function hookServer(management: string, calls: string[]): Server {
  return createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    request.on("end", () => {
      const { fqdn, value } = JSON.parse(text) as { fqdn: string; value: string };
      calls.push(`${request.url} ${fqdn} ${request.headers.authorization}`);
      const path = request.url === "/present" ? "/set-txt" : "/clear-txt";
      void fetch(`${management}${path}`, { method: "POST", body: JSON.stringify({ host: fqdn, value }) }).then(() =>
        response.end(),
      );
    });
  });
}

/** The same as a program. */
function hookProgram(folder: string, management: string): string {
  const path = join(folder, "hook");
  const program = `#!${process.execPath}
const [action, host, value] = process.argv.slice(2);
await fetch("${management}" + (action === "present" ? "/set-txt" : "/clear-txt"), { method: "POST", body: JSON.stringify({ host, value }) });
`;
  writeFileSync(`${path}.mjs`, program);
  chmodSync(`${path}.mjs`, 0o755);
  return `${path}.mjs`;
}

const CASES: Readonly<Record<string, () => Promise<string>>> = {
  async "all challenges, with rejected nonces and slow validations"() {
    let result = "";
    await withSite({ rejectNonces: 30, slow: 3 }, async (site) => {
      const calls: string[] = [];
      const hook = await listening(hookServer(site.pebble.dnsManagement, calls));
      const dns = { propagation: "100ms" };
      const command = [hookProgram(site.storage, site.pebble.dnsManagement)];
      const url = `http://127.0.0.1:${hook}`;
      const names = {
        "a.example.com": { challenge: "http-01" },
        "b.example.com": {},
        "*.c.example.com": { challenge: "dns-01", dns: { ...dns, command } },
        "d.example.com": { challenge: "dns-01", dns: { ...dns, url, authorization: "Bearer of-a-test" } },
      };
      await using gateway = await GatewayProcess.start(configOf(site, names));
      await gateway.until(() => issued(gateway).length === 4, "four certificates");
      const ca = await site.pebble.issuingRoot();
      for (const name of ["a.example.com", "b.example.com", "x.c.example.com", "d.example.com"]) {
        await served(site.tls, name, ca);
      }
      if (
        calls.join("\n") !==
        ["/present", "/cleanup"].map((each) => `${each} _acme-challenge.d.example.com. Bearer of-a-test`).join("\n")
      )
        throw new Error(`the hook was called as ${calls.join(", ")}`);
      const table = execFileSync("bin/tgctl", ["certs"], {
        env: { ...process.env, TGCTL_ADMIN: gateway.url("admin").slice("http://".length) },
        encoding: "utf8",
      });
      result = `\n${table}`;
    });
    return result;
  },

  async "an account of a customer, and authorizations that are used again"() {
    await withSite({ macKeys: { "kid-1": MAC_KEY }, rejectNonces: 20, reuseAuthorizations: 100 }, async (site) => {
      const externalAccount = { keyId: "kid-1", hmacKey: MAC_KEY };
      await using gateway = await GatewayProcess.start(
        configOf(site, { "a.example.com": { externalAccount }, "b.example.com": {} }),
      );
      const refused = () => gateway.lines.find(({ message }) => message === "no certificate was issued");
      await gateway.until(() => issued(gateway).length === 1 && refused() !== undefined, "both outcomes");
      if (!String(refused()?.error).includes("set externalAccount")) throw new Error(String(refused()?.error));
      if (JSON.stringify(gateway.lines).includes(MAC_KEY)) throw new Error("the key is in the log");
    });
    return "";
  },

  async "three processes with one storage order each certificate once"() {
    let result = "";
    await withSite({ rejectNonces: 10 }, async (site) => {
      const names = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`n${i}.example.com`, {}]));
      const [http = 0, tls = 0, http3 = 0, tls3 = 0] = await freePorts(4);
      // All begin at once. Validations reach the first one only, whichever has placed the order.
      const sites = [site, { ...site, http, tls }, { ...site, http: http3, tls: tls3 }];
      const starting = sites.map((each) => GatewayProcess.start(configOf(each, names)));
      await using running = new AsyncDisposableStack();
      const processes: GatewayProcess[] = [];
      for (const each of starting) processes.push(running.use(await each));
      const all = () => processes.flatMap(issued);
      await processes[0]?.until(() => all().length >= 6, "six certificates");
      const ca = await site.pebble.issuingRoot();
      for (const port of [site.tls, tls, tls3]) for (const name of Object.keys(names)) await served(port, name, ca);
      if (all().length !== 6) throw new Error(`${all().length} orders`);
      result = `orders by process: ${processes.map((each) => issued(each).length).join(", ")}`;
    });
    return result;
  },

  async "renewals under load, each request on a connection of its own"() {
    let result = "";
    await withSite({ lifetime: SHORT_LIFETIME, rejectNonces: 20 }, async (site) => {
      const name = "a.example.com";
      await using gateway = await GatewayProcess.start(configOf(site, { [name]: {} }));
      const ca = await site.pebble.issuingRoot();
      await gateway.until(() => issued(gateway).length === 1, "the first certificate");
      await served(site.tls, name, ca);
      const failures: string[] = [];
      let requests = 0;
      const deadline = Date.now() + (RENEWALS + 2) * SHORT_LIFETIME * 1000;
      const client = async (): Promise<void> => {
        while (issued(gateway).length <= RENEWALS && Date.now() < deadline) {
          requests++;
          try {
            const status = await ask(site.tls, name, ca);
            if (status !== 200) failures.push(String(status));
          } catch (error) {
            failures.push(messageOf(error));
          }
        }
      };
      await Promise.all([client(), client(), client(), client()]);
      const renewals = issued(gateway).length - 1;
      result = `${requests} requests, ${failures.length} failed, ${renewals} renewals`;
      if (failures.length > 0 || renewals < RENEWALS) throw new Error(`${result}: ${failures[0] ?? ""}`);
    });
    return result;
  },

  async "a start with 1,000 names that have certificates"() {
    let result = "";
    await withSite({}, async (site) => {
      // Certificates are made here: that many orders would take minutes.
      const { writeCertificate } = await import("../../src/acme/state.ts");
      const { makeSelfSigned } = await import("../../src/tls/x509/self-signed.ts");
      const names = Array.from({ length: MANY }, (_, i) => `n${i}.example.com`);
      for (const name of names) {
        const settings = { directory: site.pebble.directory, storage: site.storage, challenge: "tls-alpn-01" } as const;
        await writeCertificate({ name, settings }, makeSelfSigned(name, Date.now()));
      }
      // As users start it, who do not start the sources.
      const folder = join(site.storage, "package");
      mkdirSync(folder);
      const program = join(await installPackage(folder), "bin/tracegate");
      const time = async (count: number): Promise<number> => {
        const config = configOf(site, Object.fromEntries(names.slice(0, count).map((name) => [name, {}])));
        const start = performance.now();
        await using gateway = await GatewayProcess.start(config, { program });
        const took = performance.now() - start;
        if (issued(gateway).length > 0) throw new Error("a certificate was ordered that was there");
        return took;
      };
      // The first start compiles.
      await time(1);
      const times = { one: [] as number[], many: [] as number[] };
      for (let i = 0; i < STARTS; i++) {
        times.one.push(await time(1));
        times.many.push(await time(MANY));
      }
      const shown = (each: readonly number[]): string => each.map((ms) => Math.round(ms)).join(", ");
      result = `${shown(times.many)} ms, with one name ${shown(times.one)} ms`;
    });
    return result;
  },
};

await runSuite("acme", async () => {
  installPebble();
  const wanted = process.argv.slice(2);
  const failed: string[] = [];
  for (const [name, run] of Object.entries(CASES)) {
    if (wanted.length > 0 && !wanted.some((each) => name.includes(each))) continue;
    try {
      process.stdout.write(`acme: ${name}: ok ${await run()}\n`);
    } catch (error) {
      failed.push(name);
      process.stdout.write(`acme: ${name}: ${messageOf(error)}\n`);
    }
  }
  return failed;
});

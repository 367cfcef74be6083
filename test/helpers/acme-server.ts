/** A small ACME server (RFC 8555, RFC 9773) over real TLS, whose faults a test chooses. It validates as real ones do. */
import { createHash, createHmac, createPublicKey, randomBytes } from "node:crypto";
import { once } from "node:events";
import { get } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { connect } from "node:tls";
import { calculateJwkThumbprint, type FlattenedJWS, flattenedVerify, type JWK } from "jose";
import { altNames, extension, signCertificate, subjectOf } from "../../src/tls/x509/certificate.ts";
import { oid, readElements, sequence, tagged } from "../../src/tls/x509/der.ts";
import { readIssuer } from "../../src/tls/x509/issuer.ts";
import { TestCa } from "./certificates.ts";

interface Order {
  readonly name: string;
  readonly replaces: string | undefined;
  readonly token: string;
  readonly thumbprint: string;
  status: "pending" | "ready" | "valid" | "invalid";
  error?: object;
  certificate?: string;
}

/** What goes wrong, and where validations go. */
export interface AcmeFaults {
  /** Good nonces that are rejected first. */
  rejectedNonces: number;
  /** An error of the next new orders: its type and Retry-After in seconds. */
  refusedOrders: { readonly count: number; readonly type: string; readonly retryAfter?: number };
  /** Validations wait for it. */
  hold: Promise<void>;
  /** Key by which accounts must be bound; base64url. */
  macKey: string | undefined;
  httpPort: number;
  tlsPort: number;
  /** Milliseconds. */
  lifetime: number;
  /** What the server suggests for every certificate; undefined: nothing. */
  window: readonly [start: number, end: number] | undefined;
}

/** Its own certificate is one of `authority`, which also signs what it issues. */
export class AcmeTestServer implements AsyncDisposable {
  readonly authority = new TestCa("ACME test CA");
  readonly orders: Order[] = [];
  readonly faults: AcmeFaults = {
    rejectedNonces: 0,
    refusedOrders: { count: 0, type: "" },
    hold: Promise.resolve(),
    macKey: undefined,
    httpPort: 0,
    tlsPort: 0,
    lifetime: 90 * 24 * 60 * 60_000,
    window: undefined,
  };
  accounts = 0;
  readonly #keys = new Map<string, JWK>();
  readonly #nonces = new Set<string>();
  readonly #server: Server;

  private constructor() {
    const { cert, key } = this.authority.issue("localhost");
    this.#server = createServer({ cert, key }, (request, response) => {
      let text = "";
      request.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      request.on("end", () => {
        const nonce = randomBytes(12).toString("base64url");
        this.#nonces.add(nonce);
        response.setHeader("replay-nonce", nonce);
        this.#answer(request.url ?? "", text).then(
          ({ status = 200, headers = {}, body }) => {
            response.writeHead(status, { "content-type": "application/json", ...headers });
            response.end(typeof body === "string" ? body : JSON.stringify(body));
          },
          (error: Problem) => {
            const { type = "serverInternal", status = 500, retryAfter } = error;
            if (retryAfter !== undefined) response.setHeader("retry-after", retryAfter);
            response.writeHead(status, { "content-type": "application/problem+json" });
            response.end(JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail: error.message }));
          },
        );
      });
    });
  }

  static async start(): Promise<AcmeTestServer> {
    const made = new AcmeTestServer();
    made.#server.listen(0, "127.0.0.1");
    await once(made.#server, "listening");
    return made;
  }

  get directory(): string {
    return `${this.#base}/directory`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
    this.authority[Symbol.dispose]();
  }

  /** As a server whose database was replaced. */
  forgetAccounts(): void {
    this.#keys.clear();
  }

  get #base(): string {
    return `https://localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  async #answer(path: string, text: string): Promise<Reply> {
    const base = this.#base;
    if (path === "/directory")
      return {
        body: {
          newNonce: `${base}/nonce`,
          newAccount: `${base}/account`,
          newOrder: `${base}/order`,
          ...(this.faults.window && { renewalInfo: `${base}/renewal` }),
          meta: { externalAccountRequired: this.faults.macKey !== undefined },
        },
      };
    if (path === "/nonce") return { body: "" };
    if (path.startsWith("/renewal/")) {
      const [start = 0, end = 0] = this.faults.window ?? [];
      const suggestedWindow = { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
      return { headers: { "retry-after": "3600" }, body: { suggestedWindow } };
    }
    const { payload, jwk } = await this.#verify(path, text);
    if (path === "/account") return this.#account(payload as { externalAccountBinding?: FlattenedJWS }, jwk);
    if (path === "/order") return this.#order(payload as NewOrder, jwk);
    const [, kind, id = ""] = path.split("/");
    const order = this.orders[Number(id)];
    if (order === undefined) throw new Problem("malformed", 404, "no such order");
    if (kind === "orders") return { body: this.#view(order, id) };
    if (kind === "authorizations") return { body: this.#authorization(order, id) };
    if (kind === "certificates") return { body: order.certificate };
    if (kind === "finalize") return this.#finalize(order, id, (payload as { csr: string }).csr);
    void this.#validate(order, String(kind));
    return { body: {} };
  }

  async #verify(path: string, text: string): Promise<{ payload: unknown; jwk: JWK }> {
    const jws = JSON.parse(text) as FlattenedJWS;
    const header = JSON.parse(Buffer.from(jws.protected ?? "", "base64url").toString()) as {
      nonce: string;
      url: string;
      kid?: string;
      jwk?: JWK;
    };
    if (!this.#nonces.delete(header.nonce)) throw new Problem("badNonce", 400, "unknown nonce");
    if (this.faults.rejectedNonces > 0) {
      this.faults.rejectedNonces--;
      throw new Problem("badNonce", 400, "try again");
    }
    if (header.url !== this.#base + path) throw new Problem("unauthorized", 401, "signed for another URL");
    const jwk = header.jwk ?? this.#keys.get(header.kid ?? "");
    if (jwk === undefined) throw new Problem("accountDoesNotExist", 400, "no such account");
    const { payload } = await flattenedVerify(jws, createPublicKey({ key: jwk, format: "jwk" }));
    return { payload: payload.length === 0 ? undefined : JSON.parse(Buffer.from(payload).toString()), jwk };
  }

  #account({ externalAccountBinding }: { externalAccountBinding?: FlattenedJWS }, jwk: JWK): Reply {
    const { macKey } = this.faults;
    if (macKey !== undefined) {
      const { protected: head = "", payload = "", signature = "" } = externalAccountBinding ?? {};
      const expected = createHmac("sha256", Buffer.from(macKey, "base64url")).update(`${head}.${payload}`).digest();
      if (expected.toString("base64url") !== signature) throw new Problem("unauthorized", 401, "the binding is wrong");
    }
    const url = `${this.#base}/accounts/${this.accounts++}`;
    this.#keys.set(url, jwk);
    return { status: 201, headers: { location: url }, body: { status: "valid" } };
  }

  async #order({ identifiers, replaces }: NewOrder, jwk: JWK): Promise<Reply> {
    const { refusedOrders } = this.faults;
    if (refusedOrders.count > 0) {
      this.faults.refusedOrders = { ...refusedOrders, count: refusedOrders.count - 1 };
      throw new Problem(refusedOrders.type, 429, "slow down", refusedOrders.retryAfter);
    }
    const thumbprint = await calculateJwkThumbprint(jwk);
    const token = randomBytes(16).toString("base64url");
    const order: Order = { name: identifiers[0].value, replaces, token, thumbprint, status: "pending" };
    const id = String(this.orders.push(order) - 1);
    return { status: 201, headers: { location: `${this.#base}/orders/${id}` }, body: this.#view(order, id) };
  }

  #view({ status, error, certificate }: Order, id: string): object {
    return {
      status,
      ...(error && { error }),
      authorizations: [`${this.#base}/authorizations/${id}`],
      finalize: `${this.#base}/finalize/${id}`,
      ...(certificate !== undefined && { certificate: `${this.#base}/certificates/${id}` }),
    };
  }

  #authorization({ name, token, status, error }: Order, id: string): object {
    const challenges = ["http-01", "tls-alpn-01"].map((type) => ({
      type,
      token,
      url: `${this.#base}/${type}/${id}`,
      ...(error && { error }),
    }));
    const identifier = { type: "dns", value: name.replace(/^\*\./, "") };
    return { status: status === "ready" || status === "valid" ? "valid" : status, identifier, challenges };
  }

  async #validate(order: Order, type: string): Promise<void> {
    await this.faults.hold;
    const expected = `${order.token}.${order.thumbprint}`;
    try {
      if (type === "http-01") await this.#byHttp(order, expected);
      else await this.#byTls(order.name, expected);
      order.status = "ready";
    } catch (error) {
      order.error = { type: "urn:ietf:params:acme:error:unauthorized", detail: (error as Error).message };
      order.status = "invalid";
    }
  }

  async #byHttp({ name, token }: Order, expected: string): Promise<void> {
    const path = `/.well-known/acme-challenge/${token}`;
    const [response] = await once(
      get({ host: "127.0.0.1", port: this.faults.httpPort, path, headers: { host: name }, agent: false }),
      "response",
    );
    let text = "";
    for await (const part of response.setEncoding("utf8")) text += part;
    if (text !== expected) throw new Error(`got ${response.statusCode} ${text}`);
  }

  async #byTls(servername: string, expected: string): Promise<void> {
    const options = { host: "127.0.0.1", port: this.faults.tlsPort, servername, ALPNProtocols: ["acme-tls/1"] };
    const socket = connect({ ...options, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const certificate = socket.getPeerX509Certificate();
    const digest = createHash("sha256").update(expected).digest("hex");
    socket.destroy();
    if (socket.alpnProtocol !== "acme-tls/1") throw new Error("another protocol");
    if (certificate?.raw.toString("hex").includes(`0420${digest}`) !== true) throw new Error("another certificate");
  }

  #finalize(order: Order, id: string, csr: string): Reply {
    const issuer = readIssuer(this.authority.cert, this.authority.key);
    const now = Date.now();
    const { cert } = signCertificate(issuer, {
      subject: subjectOf(undefined),
      publicKey: publicKeyOf(Buffer.from(csr, "base64url")),
      // Not backdated, so that two thirds of the lifetime are ahead.
      notBefore: now - 1000,
      notAfter: now + this.faults.lifetime,
      extensions: [
        altNames([order.name], true),
        extension(oid("2.5.29.35"), sequence(tagged(0, "primitive", issuer.keyIdentifier)), false),
      ],
    });
    order.certificate = cert + this.authority.cert;
    order.status = "valid";
    return { body: this.#view(order, id) };
  }
}

interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

interface NewOrder {
  readonly identifiers: readonly [{ readonly value: string }];
  readonly replaces?: string;
}

class Problem extends Error {
  readonly type: string;
  readonly status: number;
  readonly retryAfter: number | undefined;

  constructor(type: string, status: number, message: string, retryAfter?: number) {
    super(message);
    this.type = type;
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** SubjectPublicKeyInfo of a certification request. */
function publicKeyOf(request: Buffer): Buffer {
  const [whole] = readElements(request);
  const [info] = readElements(whole?.content ?? Buffer.alloc(0));
  return readElements(info?.content ?? Buffer.alloc(0))[2]?.whole ?? Buffer.alloc(0);
}

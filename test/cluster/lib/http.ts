import { Agent, type IncomingHttpHeaders, request } from "node:http";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Wanted {
  readonly address: string;
  readonly port?: number;
  readonly path?: string;
  readonly host?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly agent?: Agent;
  readonly timeoutMs?: number;
}

/**
 * One HTTP request. A reused connection that the server closes before the response begins is replaced once, as every HTTP/1.1
 * client must do (RFC 9112, section 9.3.1).
 */
export async function get(wanted: Wanted): Promise<Answer> {
  try {
    return await send(wanted);
  } catch (error) {
    if (error instanceof Error && "reused" in error) return send(wanted);
    throw error;
  }
}

function send({
  address,
  port = 80,
  path = "/",
  host,
  method = "GET",
  headers,
  agent,
  timeoutMs = 5000,
}: Wanted): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: address,
        port,
        path,
        method,
        agent: agent ?? false,
        headers: { ...(host !== undefined && { host }), ...headers },
        timeout: timeoutMs,
      },
      (response) => {
        let body = "";
        response.setEncoding("utf8");
        response.on("data", (text: string) => {
          body += text;
        });
        response.once("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
        response.once("error", reject);
      },
    );
    sent.once("timeout", () => sent.destroy(new Error(`no response within ${timeoutMs} ms`)));
    sent.once("error", (error: NodeJS.ErrnoException) => {
      const stale = sent.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
      reject(stale ? Object.assign(error, { reused: true }) : error);
    });
    sent.end();
  });
}

/**
 * Requests one after the other on each of `connections` connections until it is stopped, about `perSecond` in all; counts what fails.
 */
export class Load {
  readonly failures: string[] = [];
  /** How long each request took that did not fail. */
  readonly milliseconds: number[] = [];
  requests = 0;
  readonly #agent: Agent;
  readonly #wanted: Wanted;
  readonly #running: Promise<void>[];
  readonly #pauseMs: number;
  #stopped = false;

  constructor(wanted: Wanted, connections = 8, perSecond = 1000) {
    this.#pauseMs = (connections * 1000) / perSecond;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
    this.#wanted = { ...wanted, agent: this.#agent };
    this.#running = Array.from({ length: connections }, () => this.#loop());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
    this.#agent.destroy();
  }

  async #loop(): Promise<void> {
    while (!this.#stopped) {
      const at = new Date().toISOString();
      const startedAt = performance.now();
      try {
        const { status, body } = await get(this.#wanted);
        if (status === 200) this.milliseconds.push(performance.now() - startedAt);
        else this.failures.push(`${at} ${status} ${body.slice(0, 200)}`);
      } catch (error) {
        this.failures.push(`${at} ${error instanceof Error ? error.message : String(error)}`);
      }
      this.requests++;
      await new Promise((resolve) => setTimeout(resolve, this.#pauseMs));
    }
  }
}

/** A headless Chromium that tests drive by the DevTools protocol. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Fields } from "../../src/base/fields.ts";

/** Milliseconds for the start, and for each command. */
const LIMIT_MS = 90_000;

/** A page, by its session, with cookies and storage of its own. */
export interface Page {
  /** Sends a command, such as `Page.navigate`, and returns its result. */
  send(method: string, params?: Fields): Promise<Fields>;
  /** The value of an expression or promise on the page; rejects with what it threw. */
  evaluate(expression: string): Promise<unknown>;
  /** Navigates, and waits until the page has loaded. */
  open(url: string): Promise<void>;
  /** Closes the page, and whatever it has open. */
  close(): Promise<void>;
  /** What the page wrote to its console, what its policy refused, and what it threw. */
  readonly messages: readonly string[];
  /** URLs that the page has requested, the page itself included. */
  readonly requests: readonly string[];
}

/** Runs until it is disposed of. */
export class Chromium implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, PromiseWithResolvers<Fields>>();
  readonly #listeners = new Set<(sessionId: unknown, method: string, params: Fields) => void>();
  #last = 0;

  private constructor(child: ChildProcess, folder: string, socket: WebSocket) {
    this.#child = child;
    this.#folder = folder;
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#receive(JSON.parse(String(data))));
  }

  /** @throws Error with code ENOENT if there is no such program on the PATH */
  static async start(program = "chromium"): Promise<Chromium> {
    const folder = mkdtempSync(join(tmpdir(), "chromium-"));
    // The sandbox needs rights that containers and root do not have; the pages are the project's own.
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"];
    const child = spawn(program, [...flags, `--user-data-dir=${folder}`, "about:blank"], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    try {
      const socket = new WebSocket(await addressOf(child));
      await new Promise((resolve, reject) => {
        socket.addEventListener("open", resolve);
        socket.addEventListener("error", () => reject(new Error("no connection to Chromium")));
      });
      return new Chromium(child, folder, socket);
    } catch (error) {
      child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  async page(url = "about:blank"): Promise<Page> {
    const { browserContextId } = await this.#send("Target.createBrowserContext", {});
    const { targetId } = await this.#send("Target.createTarget", { url, newWindow: true, browserContextId });
    const { sessionId } = await this.#send("Target.attachToTarget", { targetId, flatten: true });
    const messages: string[] = [];
    const requests: string[] = [];
    let loaded = Promise.withResolvers<void>();
    const listener = (session: unknown, method: string, params: Fields): void => {
      if (session !== sessionId) return;
      if (method === "Runtime.consoleAPICalled" || method === "Log.entryAdded" || method === "Runtime.exceptionThrown")
        messages.push(JSON.stringify(params));
      if (method === "Network.requestWillBeSent") requests.push(String((params.request as Fields).url));
      if (method === "Page.loadEventFired") loaded.resolve();
    };
    this.#listeners.add(listener);
    const send = (method: string, params: Fields = {}) => this.#send(method, params, sessionId);
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await send(`${domain}.enable`);
    return {
      send,
      messages,
      requests,
      async evaluate(expression) {
        const options = { awaitPromise: true, returnByValue: true };
        const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, ...options });
        if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
        return (result as Fields).value;
      },
      async open(address) {
        loaded = Promise.withResolvers();
        const { errorText } = await send("Page.navigate", { url: address });
        if (errorText !== undefined) throw new Error(`${address}: ${errorText}`);
        await loaded.promise;
      },
      close: async () => {
        this.#listeners.delete(listener);
        await this.#send("Target.disposeBrowserContext", { browserContextId });
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = new Promise((resolve) => this.#child.once("close", resolve));
    this.#socket.close();
    this.#child.kill("SIGKILL");
    await exited;
    // Its helper processes may still write for a moment.
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }

  async #send(method: string, params: Fields, sessionId?: unknown): Promise<Fields> {
    const id = ++this.#last;
    const result = Promise.withResolvers<Fields>();
    this.#waiting.set(id, result);
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
    const timer = setTimeout(() => result.reject(new Error(`Chromium did not answer ${method}`)), LIMIT_MS);
    return result.promise.finally(() => clearTimeout(timer));
  }

  #receive(message: Fields): void {
    const { id, result, error, sessionId, method, params } = message;
    if (typeof method === "string") for (const each of this.#listeners) each(sessionId, method, params as Fields);
    const waiting = this.#waiting.get(Number(id));
    if (waiting === undefined) return;
    this.#waiting.delete(Number(id));
    if (error === undefined) waiting.resolve(result as Fields);
    else waiting.reject(new Error(JSON.stringify(error)));
  }
}

/** Where the started browser listens for commands. */
function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => reject(new Error(`Chromium did not start: ${text}`)), LIMIT_MS);
    child.once("error", reject);
    child.once("close", () => reject(new Error(`Chromium ended: ${text}`)));
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const [, address] = /DevTools listening on (ws:\S+)/.exec(text) ?? [];
      if (address === undefined) return;
      clearTimeout(timer);
      resolve(address);
    });
  });
}

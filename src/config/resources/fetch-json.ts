/** No key set or discovery document is larger. */
const MAX_BYTES = 1024 * 1024;
/** A start waits for it. */
const TIMEOUT_MS = 5_000;

/** Messages for the most frequent connection errors; others have the system's text. */
const IN_WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused; nothing listens there",
  ENOTFOUND: "no such host name",
  EAI_AGAIN: "the host name could not be looked up",
};

/** The text of a JSON object behind a URL. Rejects with an Error whose message is the reason, in words. */
export async function fetchJson(url: string): Promise<string> {
  const response = await ask(url);
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`it responds with status ${response.status}`);
  }
  const text = await readAll(response);
  if (!isObject(text)) throw new Error("its response is not a JSON object");
  return text;
}

async function ask(url: string): Promise<Response> {
  const { username, password } = new URL(url);
  // `fetch` would refuse it too, with the password in its message.
  if (username !== "" || password !== "") throw new Error("its URL has a user or a password, which are not sent");
  try {
    return await fetch(url, {
      headers: { accept: "application/json" },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch (error) {
    throw new Error(explain(error), { cause: error });
  }
}

async function readAll(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const part of response.body ?? []) {
      size += part.byteLength;
      if (size > MAX_BYTES) break;
      parts.push(part);
    }
  } catch (error) {
    throw new Error(explain(error), { cause: error });
  }
  if (size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES / 1024 / 1024} MiB`);
  return Buffer.concat(parts).toString("utf8");
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** The reason of a failure, which `fetch` hides in the `cause` of its error. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `it has not responded within ${TIMEOUT_MS / 1000} s`;
  if (!(error.cause instanceof Error)) return error.message;
  if (error.cause.message === "bad port")
    return "its port is one that browsers and Node.js refuse to connect to; use another one";
  const code = (error.cause as NodeJS.ErrnoException).code ?? "";
  return IN_WORDS[code] ?? (error.cause.message || code || error.message);
}

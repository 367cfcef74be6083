/** `tracegate healthcheck`: asks a running gateway whether it is ready, for containers and scripts. */
import { request } from "node:http";
import { messageOf } from "../base/errors.ts";

/** Milliseconds: a gateway that takes longer is not healthy. */
const TIMEOUT_MS = 3000;

/** Whether the readiness server at `url` responds with 200, and its text or the connection's error. Never rejects. */
export function probeReadiness(
  url: string,
  timeoutMs = TIMEOUT_MS,
): Promise<{ readonly ready: boolean; readonly answer: string }> {
  return new Promise((resolve) => {
    const fail = (error: Error): void => resolve({ ready: false, answer: `${url}: ${messageOf(error)}` });
    const sent = request(url, { agent: false, timeout: timeoutMs }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text = (text + part).slice(0, 1000);
      });
      response.on("error", fail);
      response.on("end", () => resolve({ ready: response.statusCode === 200, answer: text.trim() }));
    });
    sent.on("timeout", () => sent.destroy(new Error(`no response within ${timeoutMs} ms`)));
    sent.on("error", fail);
    sent.end();
  });
}

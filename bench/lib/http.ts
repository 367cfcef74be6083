import { type Agent, request } from "node:http";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export interface Ask {
  readonly port: number;
  readonly path: string;
  readonly method?: "GET" | "POST";
  readonly host?: string;
  readonly agent?: Agent;
}

/** One request to loopback with its whole answer; rejects after 10 seconds of silence. */
export function ask({ port, path, method = "GET", host, agent }: Ask): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = host === undefined ? {} : { host };
    const call = request({ host: "127.0.0.1", port, path, method, headers, agent, timeout: 10_000 }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      response.on("error", reject);
    });
    call.on("timeout", () => call.destroy(new Error(`no response from 127.0.0.1:${port}${path} in 10 s`)));
    call.on("error", reject);
    call.end();
  });
}

/** True when the path answers 200; false for any other status and while nothing listens. */
export async function answersOk(port: number, path: string, host?: string): Promise<boolean> {
  try {
    return (await ask({ port, path, ...(host === undefined ? {} : { host }) })).status === 200;
  } catch {
    return false;
  }
}

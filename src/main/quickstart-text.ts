/** What `tracegate quickstart` prints: commands that work as they stand, in another terminal in the same folder. */
import { realpathSync } from "node:fs";
import { delimiter, join, relative } from "node:path";
import { appRoot } from "../base/app-root.ts";
import type { Bind } from "../ir/ir.ts";

/** The parts of a bind that decide how to reach it. */
type TriedBind = Pick<Bind, "key" | "mode"> & {
  readonly listeners: readonly Pick<Bind["listeners"][number], "protocol" | "hostname" | "tls">[];
};

/**
 * The text for the binds, without `files` for the quick start's own configuration. Empty if no bind has a socket.
 */
export function quickstartText(
  binds: readonly TriedBind[],
  ports: Readonly<Record<string, number>>,
  files: readonly string[],
  { echo, tgctl }: { readonly echo: number; readonly tgctl: string },
): string {
  const bind = binds.find(({ key, mode }) => mode === "standard" && (ports[key] ?? 0) > 0);
  const port = bind && ports[bind.key];
  if (bind === undefined || port === undefined) return "";
  const path = files.length === 0 ? "/api/hello" : "/";
  const { serves, commands } = waysOf(bind, port, path, tgctl);
  const echoLine = `\nThe echo server listens on 127.0.0.1:${echo}.${files.length === 0 ? "" : " The first lines of an example say what to try."}\n`;
  return `
tracegate serves ${serves}. Try, in another terminal:

${commands.map((command) => `  ${command}\n`).join("")}${echoLine}
Press Ctrl-C to stop.
`;
}

function waysOf(
  { listeners }: TriedBind,
  port: number,
  path: string,
  tgctl: string,
): { readonly serves: string; readonly commands: readonly string[] } {
  const { protocol = "HTTP", hostname = "", tls } = listeners[0] ?? {};
  const named = hostname !== "" && hostname !== "*";
  const host = named ? hostname.replace(/^\*/, "www") : "localhost";
  const watch = `${tgctl} proxy trace --local`;
  // With --resolve, curl connects to this machine even for a name that no resolver knows.
  const resolve = named ? ` --resolve ${host}:${port}:127.0.0.1` : "";
  const trace = (url: string, more = "") => `${watch} --port ${port} -- ${url}${more}`;
  switch (protocol) {
    case "HTTP": {
      const url = `http://${host}:${port}${path}`;
      return { serves: `http://localhost:${port}`, commands: [`curl -s${resolve} "${url}?name=you"`, trace(url)] };
    }
    case "HTTPS": {
      // -k: the certificate of an example is not signed by a known authority.
      const url = `https://${host}:${port}${path}`;
      return {
        serves: `https://localhost:${port}`,
        commands: [`curl -sk${resolve} "${url}?name=you"`, trace(url, " -k")],
      };
    }
    case "TLS":
      return {
        serves: `TLS on port ${port}${tls === undefined ? ", passed through to the backend" : ""}`,
        commands: [`curl -vk --resolve ${host}:${port}:127.0.0.1 https://${host}:${port}/`, watch],
      };
    case "TCP":
      // The echo server behind the examples speaks HTTP.
      return {
        serves: `TCP on port ${port}`,
        commands: [`printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc localhost ${port}`, watch],
      };
    case "UDP":
      return { serves: `UDP on port ${port}`, commands: [`printf hello | nc -u -w 1 localhost ${port}`] };
  }
}

/**
 * `tgctl` if a shell would find this package's program, else its path from the current folder. Folders that npm adds to the PATH of a script
 * are not in the PATH of another terminal.
 */
export function tgctlCommand(path: string = process.env.PATH ?? "", folder: string = process.cwd()): string {
  const own = `${appRoot}bin/tgctl`;
  const found = path.split(delimiter).some((each) => {
    if (each === "" || each.includes("node_modules/.bin")) return false;
    try {
      return realpathSync(join(each, "tgctl")) === realpathSync(own);
    } catch {
      return false;
    }
  });
  return found ? "tgctl" : relative(folder, own);
}

import { WEB_VIEW_FOLDER } from "../../../admin/server/web-view.ts";
import { readAppFile } from "../../../base/app-files.ts";
import { LogOutput } from "../../../base/log.ts";
import { LogFilter } from "../../../base/log-filter.ts";
import { adminResult } from "../../proxy/admin.ts";
import { failureOf, RESOURCE, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { write, writeJson } from "../../runner/context.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { CliError } from "../../runner/errors.ts";
import { openProxies } from "../open-proxies.ts";

export const ui = defineCommand({
  name: "ui",
  summary: "Show the web view in a browser: what fails, which request it was, and what decided",
  description: [
    "Serves the web view on a port of this machine until Ctrl-C and opens it in the browser; in a cluster through the API server, so no admin port has to be exposed. It shows all replicas of a Gateway as one, also those that start later, and says which of them do not answer.",
    "The address has a secret part, so other users and web pages cannot use it. It is the same each time that the same proxies are shown, so links into the view keep working; if its port is in use, another one is taken.",
  ],
  argument: RESOURCE,
  options: {
    ...TARGET_OPTIONS,
    "no-open": { type: "switch", summary: "Print the address only" },
  },
  examples: [
    { does: "The gateway on this machine", run: "ui --local" },
    { does: "In a cluster", run: "ui gateway/web -n shop" },
    { does: "On a machine without a browser", run: "ui --no-open" },
  ],
  async run(invocation, context) {
    if (readAppFile(`${WEB_VIEW_FOLDER}/index.html`) === undefined)
      throw new CliError("failure", `the web view is not built: ${WEB_VIEW_FOLDER}/index.html is missing`, {
        hint: "run `npm run build` in the checkout; an installed package has it",
      });
    const { signal } = context;
    await using proxies = await openProxies(invocation, context);
    const outcomes = await proxies.each((proxy) => adminResult(proxy, proxy.client.overview({ signal })));
    const failure = failureOf(outcomes);
    if (failure !== undefined && outcomes.every(({ result }) => result.status === "rejected")) throw failure;
    // Loaded here, so that other commands do without the server.
    const [{ addressOf }, { oneProxy }, { allReplicas }, { openBrowser }, { serveView }] = await Promise.all([
      import("../../ui/address.ts"),
      import("../../ui/one-proxy.ts"),
      import("../../ui/replicas.ts"),
      import("../../ui/open-browser.ts"),
      import("../../ui/server.ts"),
    ]);
    const log = new LogOutput(new LogFilter("error", new Map()), "text", (line) => void write(context.stderr, line));
    const address = await addressOf(proxies.id, context.env);
    const source = proxies.serving === undefined ? oneProxy(await proxies.first(true)) : allReplicas(proxies);
    const view = await serveView(source, address, log.logger("admin"));
    try {
      if (context.json) await writeJson(context, { url: view.url });
      else await write(context.stdout, `${view.url}\nThe web view of ${proxies.name}; Ctrl-C ends it\n`);
      const opened = invocation.options["no-open"] || (await openBrowser(view.ticket, context.env));
      if (!opened) await write(context.stderr, "no browser could be started: open the address yourself\n");
      await new Promise((resolve) => {
        if (signal.aborted) resolve(undefined);
        signal.addEventListener("abort", resolve, { once: true });
      });
    } finally {
      await view.close();
    }
  },
});

import { localProxy } from "../proxy/admin.ts";
import { chooseTarget, type Proxies, requestHint, type TargetWords } from "../proxy/proxies.ts";
import type { Context } from "../runner/context.ts";
import { usage } from "../runner/errors.ts";

/** The proxies that the command line names; those of a cluster are looked up when a method asks for them. */
export async function openProxies(words: TargetWords, context: Context): Promise<Proxies> {
  const { argument, options } = words;
  if (argument !== undefined && /^https?:\/\//i.test(argument))
    throw usage(`"${argument}" does not refer to a supported pod resource`, requestHint(argument));
  if (chooseTarget(words, context.env) === "cluster") {
    // Loads the Kubernetes client, which commands for this machine do without.
    const { openClusterProxies } = await import("../cluster/proxies.ts");
    return openClusterProxies(words, context);
  }
  const proxy = localProxy(options["proxy-admin-port"], context.env);
  return {
    name: proxy.name,
    id: proxy.name,
    inCluster: false,
    first: async () => proxy,
    async each(call) {
      const [result] = await Promise.allSettled([call(proxy)]);
      return [{ name: proxy.name, pod: undefined, result }];
    },
    serving: undefined,
    async [Symbol.asyncDispose]() {},
  };
}

import { AdminClient } from "../../admin/client/client.ts";
import { fieldsOf } from "../../base/fields.ts";
import { objectKey } from "../../base/object-key.ts";
import type { Pod } from "../../kube/objects.ts";
import { podProblem } from "../../kube/pod-problem.ts";
import type { PortForward } from "../../kube/port-forward.ts";
import { list, text } from "../dump/dump.ts";
import { adminResult, type ProxyAdmin } from "../proxy/admin.ts";
import type { Outcome, Proxies, TargetWords } from "../proxy/proxies.ts";
import { type Context, write } from "../runner/context.ts";
import { CliError } from "../runner/errors.ts";
import { Cluster } from "./cluster.ts";
import { eachPod, firstRunning, forwardFailure, isReady, podAdmin } from "./pod-admin.ts";
import { noPods, onlyGateway, parseResource, podName, podsOf, type Resource, resourceName } from "./resource.ts";

/** Port of a proxy's admin server in its pod. */
const ADMIN_PORT = 15000;

/** The pods that a command line names, as proxies. */
export async function openClusterProxies({ argument, options }: TargetWords, context: Context): Promise<Proxies> {
  const named = argument === undefined ? undefined : parseResource(argument);
  const cluster = await Cluster.connect(options, context);
  const resource =
    named === undefined
      ? await onlyGateway(cluster.client, cluster.namespace, context.signal)
      : { ...named, namespace: named.namespace ?? cluster.namespace };
  return new ClusterProxies(cluster, resource, options.pod, options["proxy-admin-port"] ?? ADMIN_PORT, context);
}

interface KnownProxy {
  readonly pod: Pod;
  readonly proxy: Promise<ProxyAdmin>;
}

class ClusterProxies implements Proxies {
  readonly #cluster: Cluster;
  readonly #resource: Resource;
  /** `--pod`: only this one. */
  readonly #pinned: string | undefined;
  readonly #adminPort: number;
  readonly #context: Context;
  /** By the name of the pod; a proxy keeps its forwarded ports until its pod is gone. */
  readonly #proxies = new Map<string, KnownProxy>();
  readonly name: string;
  readonly id: string;
  readonly inCluster = true;
  readonly gateway: string | undefined;
  readonly serving: Proxies["serving"];

  constructor(cluster: Cluster, resource: Resource, pinned: string | undefined, adminPort: number, context: Context) {
    this.#cluster = cluster;
    this.#resource = resource;
    this.#pinned = pinned;
    this.#adminPort = adminPort;
    this.#context = context;
    this.name = resourceName(resource);
    this.gateway = resource.type === "gateway" ? objectKey(resource) : undefined;
    this.id = [cluster.client.access.server.href, resource.namespace, this.name, pinned ?? ""].join(" ");
    this.serving = pinned === undefined && resource.type !== "pod" ? () => this.#serving() : undefined;
  }

  async first(said = false): Promise<ProxyAdmin> {
    const pods = await this.#pods();
    const pod = firstRunning(pods);
    if (pod === undefined) throw noPods(this.#resource);
    const { stderr } = this.#context;
    if (pods.length > 1 && (said || stderr.isTTY === true))
      await write(stderr, `${podName(pod)}, one of ${pods.length} pods of ${this.name}; --pod chooses another\n`);
    return this.#proxy(pod);
  }

  async each<T>(call: (proxy: ProxyAdmin) => Promise<T>): Promise<readonly Outcome<T>[]> {
    return eachPod(await this.#pods(), (pod) => this.#proxy(pod), call);
  }

  /** @throws CliError if none is ready and one of them cannot start, so that waiting would not help */
  async #serving(): Promise<readonly ProxyAdmin[]> {
    const pods = await this.#pods();
    const ready = pods.filter(isReady);
    if (ready.length === 0) {
      for (const pod of pods) {
        const problem = podProblem(pod);
        if (problem !== undefined)
          throw new CliError("failure", `no pod of ${this.name} is ready: pod ${podName(pod)} ${problem.what}`, {
            hint: problem.command,
          });
      }
    }
    return Promise.all(ready.map((pod) => this.#proxy(pod)));
  }

  /** Sorted by name. @throws CliError without pods */
  async #pods(): Promise<readonly Pod[]> {
    const pods = await podsOf(this.#cluster.client, this.#resource, this.#context.signal);
    this.#forgetAllBut(pods);
    if (this.#pinned === undefined) return pods;
    const pinned = pods.filter(({ metadata }) => metadata.name === this.#pinned);
    if (pinned.length > 0) return pinned;
    const names = pods.map(({ metadata }) => metadata.name).join(", ");
    throw new CliError("failure", `${this.name} has no pod "${this.#pinned}"`, {
      hint: `its pods are ${names}`,
    });
  }

  #proxy(pod: Pod): Promise<ProxyAdmin> {
    const known = this.#proxies.get(pod.metadata.name);
    if (known !== undefined) return known.proxy;
    const proxy = podProxy(this.#cluster, pod, this.#adminPort, this.#context.signal);
    this.#proxies.set(pod.metadata.name, { pod, proxy });
    // A pod that is not running yet is tried again.
    proxy.catch(() => {
      if (this.#proxies.get(pod.metadata.name)?.proxy === proxy) this.#proxies.delete(pod.metadata.name);
    });
    return proxy;
  }

  /** Closes the forwarded ports of pods that are gone. In a StatefulSet, the next pod has the same name and another uid. */
  #forgetAllBut(pods: readonly Pod[]): void {
    const present = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const [name, { pod, proxy }] of this.#proxies) {
      if (present.has(pod.metadata.uid)) continue;
      this.#proxies.delete(name);
      // A proxy that is being opened is closed afterwards.
      void proxy.finally(() => this.#cluster.closeForwards(pod)).catch(() => undefined);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cluster[Symbol.asyncDispose]();
  }
}

/** @throws CliError if the pod is not running */
async function podProxy(cluster: Cluster, pod: Pod, adminPort: number, signal: AbortSignal): Promise<ProxyAdmin> {
  const admin = await podAdmin(cluster, pod, adminPort, "--proxy-admin-port");
  const forwards = new Map<number, PortForward>();
  const proxy: ProxyAdmin = {
    ...admin,
    client: new AdminClient(admin.address),
    async reach(port) {
      const forward = forwards.get(port) ?? (await cluster.forward(pod, port));
      forwards.set(port, forward);
      return forward.port;
    },
    async failureAt(port) {
      const forward = forwards.get(port);
      if (forward?.failure === undefined) return undefined;
      const ports = await adminResult(proxy, proxy.client.configDump({ signal })).then(listenerPorts, () => []);
      const hint =
        ports.length === 0 ? "this proxy has no listeners yet" : `its listeners use ports ${ports.join(", ")}`;
      return forwardFailure(forward, pod, port, hint);
    },
  };
  return proxy;
}

/** The ports of the binds of a configuration dump. */
function listenerPorts(dump: unknown): readonly number[] {
  const ports = list(fieldsOf(dump).binds).map((bind) => Number(/(\d+)$/.exec(text(fieldsOf(bind).address))?.[1]));
  return [...new Set(ports)].filter(Number.isInteger).sort((a, b) => a - b);
}

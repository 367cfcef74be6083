import { ControllerClient } from "../../admin/client/controller-client.ts";
import type { Pod } from "../../kube/objects.ts";
import type { ClusterOptions, Outcome } from "../proxy/proxies.ts";
import type { Context } from "../runner/context.ts";
import { Cluster } from "./cluster.ts";
import { eachPod, firstRunning, type PodAdmin, podAdmin } from "./pod-admin.ts";
import { controllerPods } from "./resource.ts";

/** One replica of the controller. */
interface ControllerAdmin extends PodAdmin {
  readonly client: ControllerClient;
}

/** The replicas of the controller in a namespace, sorted by name. */
export class Controllers implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #pods: readonly Pod[];
  readonly #port: number;

  /** @throws CliError if it finds no pods or the lookup fails */
  static async open(
    options: ClusterOptions & { readonly "controller-admin-port": number },
    context: Context,
  ): Promise<Controllers> {
    const cluster = await Cluster.connect(options, context);
    return new Controllers(
      cluster,
      await controllerPods(cluster.client, cluster.namespace, context.signal),
      options["controller-admin-port"],
    );
  }

  private constructor(cluster: Cluster, pods: readonly Pod[], port: number) {
    this.#cluster = cluster;
    this.#pods = pods;
    this.#port = port;
  }

  /** The first that runs. */
  async first(): Promise<ControllerAdmin> {
    const pod = firstRunning(this.#pods);
    if (pod === undefined) throw new Error("there is no pod");
    return this.#open(pod);
  }

  each<T>(call: (controller: ControllerAdmin) => Promise<T>): Promise<readonly Outcome<T>[]> {
    return eachPod(this.#pods, (pod) => this.#open(pod), call);
  }

  async #open(pod: Pod): Promise<ControllerAdmin> {
    const admin = await podAdmin(this.#cluster, pod, this.#port, "--controller-admin-port");
    return { ...admin, client: new ControllerClient(admin.address) };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cluster[Symbol.asyncDispose]();
  }
}

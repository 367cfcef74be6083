import { asError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { type KubeClient, KubeError, resourcePath } from "../../kube/client.ts";
import type { GatewayClass } from "../../kube/objects.ts";
import { RESOURCES } from "../../kube/resources.ts";
import { MANAGED_BY, MANAGER } from "../base/manifest.ts";
import type { ControllerSettings } from "../base/settings.ts";
import { WorkQueue } from "../base/work-queue.ts";

const RESTS = { failure: { first: 500, longest: 60_000 }, change: { first: 1000, longest: 60_000, quiet: 60_000 } };

/**
 * Creates the GatewayClass of the settings whenever it is missing, so that Gateways can name it. An existing one is left as it is:
 * its parameters are the user's. To be run by the leader.
 */
export class ClassKeeper {
  readonly #queue: WorkQueue;
  readonly #name: string;

  constructor(client: KubeClient, { className: name, controllerName }: ControllerSettings, log: Logger) {
    this.#name = name;
    const create = async (_name: string, signal: AbortSignal): Promise<boolean> => {
      const { group, version } = RESOURCES.GatewayClass;
      const body = {
        apiVersion: `${group}/${version}`,
        kind: "GatewayClass",
        metadata: { name, labels: { [MANAGED_BY]: MANAGER } },
        spec: { controllerName, description: "Gateways that tracegate runs" },
      };
      try {
        const path = resourcePath(RESOURCES.GatewayClass);
        await client.request("POST", path, { query: { fieldManager: MANAGER }, body, signal });
        log.info("created the GatewayClass", { name, controllerName });
      } catch (error) {
        if (!(error instanceof KubeError) || error.reason !== "AlreadyExists") throw error;
      }
      return true;
    };
    this.#queue = new WorkQueue(1, RESTS, create, (_name, error, failures) =>
      log.warn("cannot create the GatewayClass, retrying", { name, failures, error: asError(error) }),
    );
  }

  /** `existing`: the class of that name, if any. To be called once classes have been read, and after changes. */
  update(existing: GatewayClass | undefined): void {
    if (existing === undefined) this.#queue.add(this.#name);
  }

  /** Resolves when no request is in progress. */
  close(): Promise<void> {
    return this.#queue.close();
  }
}

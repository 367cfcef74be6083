/** Has the controller translate changed objects, for the proxies of a Gateway to judge. */
import { randomUUID } from "node:crypto";
import type { PreviewReport } from "../../admin/client/controller-client.ts";
import type { ResourceName } from "../../kube/resources.ts";
import { adminResult, queryError } from "../proxy/admin.ts";
import { failureOf, type TargetWords } from "../proxy/proxies.ts";
import type { Context } from "../runner/context.ts";
import { CliError, usage } from "../runner/errors.ts";
import { Cluster } from "./cluster.ts";
import { Controllers } from "./controllers.ts";
import { dryRun, readManifests } from "./manifests.ts";
import { onlyGateway, parseResource, resourceName } from "./resource.ts";

interface PreviewWords extends TargetWords {
  readonly options: TargetWords["options"] & {
    readonly "controller-namespace": string;
    readonly "controller-admin-port": number;
  };
}

/** What the controller has made of the objects. */
export interface KeptPreview extends PreviewReport {
  /** By which each proxy of the Gateway gets it. */
  readonly id: string;
  /** Objects of other kinds, which the controller does not read. */
  readonly ignored: readonly string[];
}

/** Reads objects, has the API server check them, and every replica of the controller translate and keep them. @throws CliError */
export async function keepPreview(
  paths: readonly string[],
  { argument, options }: PreviewWords,
  context: Context,
): Promise<KeptPreview> {
  const { signal } = context;
  await using cluster = await Cluster.connect(options, context);
  const named = argument === undefined ? undefined : parseResource(argument);
  if (named !== undefined && named.type !== "gateway")
    throw usage(`${resourceName(named)} is not a Gateway`, "tgctl impact gateway/NAME -f FILE");
  const { name, namespace = cluster.namespace } =
    named ?? (await onlyGateway(cluster.client, cluster.namespace, signal));
  const manifests = readManifests(paths, cluster.namespace);
  const known = manifests.flatMap((each) => (isKnown(each) ? [each] : []));
  if (known.length === 0)
    throw new CliError("failure", `${paths.join(", ")}: no object that the controller reads`, {
      hint: "routes, Gateways, policies, Services, and what they refer to",
    });
  const objects = await Promise.all(known.map((each) => dryRun(cluster.client, each, signal)));
  await using controllers = await Controllers.open({ ...options, namespace: options["controller-namespace"] }, context);
  const id = randomUUID();
  const outcomes = await controllers.each((controller) =>
    adminResult(
      controller,
      controller.client.preview(id, `${namespace}/${name}`, objects, { signal }),
      (status, body) => queryError(status, body, "this version of the controller keeps no previews"),
    ),
  );
  // Proxies reach any of them.
  const failure = failureOf(outcomes);
  if (failure !== undefined) throw failure;
  const [report] = outcomes.flatMap(({ result }) => (result.status === "fulfilled" ? [result.value] : []));
  if (report === undefined) throw new CliError("failure", "no replica of the controller runs");
  return { ...report, id, ignored: manifests.filter((each) => !isKnown(each)).map((each) => each.name) };
}

function isKnown<T extends { readonly resource: ResourceName | undefined }>(
  manifest: T,
): manifest is T & { readonly resource: ResourceName } {
  return manifest.resource !== undefined;
}

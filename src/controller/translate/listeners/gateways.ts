/** A Gateway with the listeners that it and its ListenerSets declare. */
import type { Gateway } from "../../../kube/objects.ts";
import { foreignCertificate } from "../../../translation/advice.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import { type Loaded, loadCertificate } from "../cluster/secrets.ts";
import { findingsCondition, isFalse, isTrue, lintFindings } from "../model/conditions.ts";
import { fleetOf, mergeProblem } from "../model/fleets.ts";
import { ourClass } from "../model/gateway-class.ts";
import {
  type ConditionDraft,
  type GatewayModel,
  isOfGateway,
  type ListenerModel,
  type Problem,
} from "../model/model.ts";
import { sharedPortProblem } from "../policy/frontends.ts";
import { declaredListeners } from "./declarations.ts";
import { requestedAddresses } from "./gateway-addresses.ts";
import { overlappingTls } from "./listener-conflicts.ts";
import { hasInsecureFallback, type ListenerTls, translateListenerTls } from "./listener-tls.ts";
import { allowedKinds, type Declaration, invalidKinds, listenerKey, ownProblem, protocolOf } from "./listeners.ts";
import { mergedConflicts, reservation } from "./merged-conflicts.ts";
import { parametersProblem } from "./parameters.ts";

/** undefined: the Gateway does not exist, or its class is not ours. */
export const gatewayModel = defineQuery<GatewayModel | undefined>("gatewayModel", (read, key) => {
  const gateway = read.get("Gateway", key);
  if (gateway === undefined || ourClass(read, gateway) === undefined) return undefined;
  const isShared = read.query(fleetOf, key).key !== key;
  const rivals = isShared ? read.query(mergedConflicts, [gateway.spec.gatewayClassName, key]) : {};
  const listeners = overlappingTls(
    read.query(declaredListeners, key).map(({ declaration, conflict = rivals[listenerKey(declaration)] }) => {
      const port = String(declaration.spec.port);
      const settings = isShared ? read.query(sharedPortProblem, [key, port]) : undefined;
      const listener = translateListener(
        declaration,
        conflict,
        settings,
        translateListenerTls(read, declaration, gateway),
      );
      const isReserved = isShared && conflict === undefined && ownProblem(declaration.spec) === undefined;
      return isReserved
        ? { ...listener, conditions: [...listener.conditions, reservation(gateway.spec.gatewayClassName)] }
        : listener;
    }),
  );
  const own = listeners.filter(isOfGateway);
  const accepted = acceptance(read, gateway, own);
  // A ListenerSet is accepted with its first valid listener, but not by a Gateway that is not accepted itself.
  const sets = new Set(
    listeners.flatMap(({ listenerSet, programmed }) =>
      programmed && accepted.status === "True" && listenerSet !== undefined ? [listenerSet] : [],
    ),
  );
  const client = clientCertificate(read, gateway);
  return {
    key,
    listeners,
    listenerSets: [...sets],
    conditions: [accepted, resolution(client, own), ...(hasInsecureFallback(gateway) ? [INSECURE_FALLBACK] : [])],
    ...(client?.ok && { clientCertificate: { cert: client.value.cert, key: client.value.key } }),
  };
});

function translateListener(
  declaration: Declaration,
  conflict: Problem | undefined,
  settings: Problem | undefined,
  tls: ListenerTls,
): ListenerModel {
  const { spec, gateway, listenerSet, ingress, namespace, origin } = declaration;
  const problem = conflict ?? ownProblem(spec) ?? settings ?? tls.problem;
  const unresolved = tls.unresolved ?? invalidKinds(spec);
  const secure = spec.protocol === "HTTPS" || spec.protocol === "TLS";
  // What is not resolved stops a listener only if nothing is left to serve it with.
  const obstacle = problem ?? (secure && tls.tls === undefined ? tls.unresolved : undefined);
  const served = tls.tls === "passthrough" ? undefined : tls.tls;
  const foreign = served && foreignCertificate(served, spec.hostname ?? "");
  const { from = "Same", ...selector } = spec.allowedRoutes?.namespaces ?? {};
  return {
    key: listenerKey(declaration),
    gateway,
    ...(listenerSet !== undefined && { listenerSet }),
    ...(ingress !== undefined && { ingress }),
    name: spec.name,
    origin,
    port: spec.port,
    protocol: protocolOf(spec),
    hostname: (spec.hostname ?? "").toLowerCase(),
    kinds: allowedKinds(spec),
    namespaces: { from, ...selector },
    namespace,
    ...(tls.tls !== undefined && { tls: tls.tls }),
    accepted: problem === undefined,
    programmed: obstacle === undefined,
    conditions: [
      problem === undefined
        ? isTrue("Accepted", "Accepted", "Listener is accepted")
        : isFalse("Accepted", problem.reason, problem.message),
      conflict === undefined
        ? isFalse("Conflicted", "NoConflicts", "Listener does not conflict with another")
        : isTrue("Conflicted", conflict.reason, conflict.message),
      unresolved === undefined
        ? isTrue("ResolvedRefs", "ResolvedRefs", "All references are resolved")
        : isFalse("ResolvedRefs", unresolved.reason, unresolved.message),
      obstacle === undefined
        ? isTrue("Programmed", "Programmed", "Listener is programmed")
        : isFalse("Programmed", problem === undefined ? "Invalid" : problem.reason, obstacle.message),
      ...findingsCondition(
        foreign === undefined ? [] : lintFindings([...origin.path, "tls", "certificateRefs"], foreign),
      ),
    ],
  };
}

function acceptance(read: Read, gateway: Gateway, listeners: readonly ListenerModel[]): ConditionDraft {
  const { unsupported } = requestedAddresses(gateway);
  const problem = unsupported ?? mergeProblem(read, gateway) ?? parametersProblem(read, gateway);
  if (problem !== undefined) return isFalse("Accepted", problem.reason, problem.message);
  const rejected = listeners.filter(({ accepted }) => !accepted).map(({ name }) => name);
  if (rejected.length === 0) return isTrue("Accepted", "Accepted", "Successfully accepted Gateway");
  const message = `Some listeners are not accepted: ${rejected.join(", ")}`;
  const make = rejected.length === listeners.length ? isFalse : isTrue;
  return make("Accepted", "ListenersNotValid", message);
}

type Certificate = Loaded<NonNullable<GatewayModel["clientCertificate"]>>;

function clientCertificate(read: Read, { metadata, spec }: Gateway): Certificate | undefined {
  const reference = spec.tls?.backend?.clientCertificateRef;
  return reference && loadCertificate(read, { kind: "Gateway", namespace: metadata.namespace }, reference);
}

function resolution(client: Certificate | undefined, listeners: readonly ListenerModel[]): ConditionDraft {
  if (client?.ok === false) {
    const reason = client.why === "notPermitted" ? "RefNotPermitted" : "InvalidClientCertificateRef";
    return isFalse("ResolvedRefs", reason, client.message);
  }
  if (client?.problem !== undefined) return isFalse("ResolvedRefs", "InvalidClientCertificateRef", client.problem);
  const unresolved = listeners.filter(({ conditions }) =>
    conditions.some(({ type, status }) => type === "ResolvedRefs" && status === "False"),
  );
  if (unresolved.length === 0) return isTrue("ResolvedRefs", "ResolvedRefs", "All references are resolved");
  const names = unresolved.map(({ name }) => name).join(", ");
  return isFalse(
    "ResolvedRefs",
    "ListenersNotResolved",
    `Some listeners have references that are not resolved: ${names}`,
  );
}

const INSECURE_FALLBACK = isTrue(
  "InsecureFrontendValidationMode",
  "ConfigurationChanged",
  "Clients without a valid certificate are served: a validation of spec.tls.frontend has mode AllowInsecureFallback",
);

import { placeOf } from "./unsupported-fields.ts";

const HBONE = "tracegate is no part of a service mesh";
const NATIVE = "metrics are served as text, in which there are no native histograms; use classic";
const OLD_TLS = "tracegate does not speak TLS before 1.2; use TLS_V1_2 or TLS_V1_3";

/** Values that configurations of this family know and tracegate does not have, by the field they stand in. */
const ABSENT: readonly { readonly in: RegExp; readonly values: Readonly<Record<string, string>> }[] = [
  { in: /(^|\.)protocol$/, values: { HBONE: `${HBONE}; use HTTP or TCP` } },
  {
    in: /^binds\.tunnelProtocol$/,
    values: {
      hboneWaypoint: `${HBONE}; use direct`,
      hboneGateway: `${HBONE}; use direct`,
    },
  },
  {
    in: /\.target\.route\.kind$/,
    values: {
      GRPCRoute: "gRPC is routed as HTTP; use HTTPRoute",
      TLSRoute: "TLS that passes through is routed as TCP; use TCPRoute",
    },
  },
  {
    in: /\.backendAuth$/,
    values: {
      copilot:
        "needs credentials from a cloud, which tracegate does not support; use key, jwtSign or oauthTokenExchange",
    },
  },
  { in: /^config\.histograms$/, values: { native: NATIVE, both: NATIVE } },
  {
    in: /\.(min|max)(TLS)?Version$/,
    values: { TLS_V1_0: OLD_TLS, TLS_V1_1: OLD_TLS },
  },
];

/**
 * More than "not a known value" about one that is known elsewhere, a text or an object with one field; undefined when it is
 * known nowhere.
 */
export function absentValue(path: readonly PropertyKey[], value: unknown): string | undefined {
  const name = nameOf(value);
  if (name === undefined) return undefined;
  const place = placeOf(path);
  for (const { in: where, values } of ABSENT) if (where.test(place) && Object.hasOwn(values, name)) return values[name];
  return undefined;
}

function nameOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const [name, ...others] = typeof value === "object" && value !== null ? Object.keys(value) : [];
  return others.length === 0 ? name : undefined;
}

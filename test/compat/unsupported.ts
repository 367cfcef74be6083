/** A field that tracegate does not serve: the smallest configuration with it, and what its user reads. */
export interface UnsupportedField {
  /** Path without indices; fields below it are meant too. */
  readonly field: string;
  readonly config: string;
  readonly message: RegExp;
  /** The configuration is accepted all the same. */
  readonly warned?: true;
}

const BACKEND_AUTH = ["routes.policies.backendAuth", "routes.backends.policies.backendAuth"];

/** Where the sections of fields.txt stand in a configuration. */
export const LOCATIONS: Readonly<Record<string, readonly string[]>> = {
  Route: ["routes", "binds.listeners.routes"],
  backendAuth: BACKEND_AUTH,
  backendTLS: ["routes.policies.backendTLS"],
  backendTunnel: ["routes.policies.backendTunnel"],
  extAuthz: ["routes.policies.extAuthz"],
  extProc: ["routes.policies.extProc"],
  jwtAuth: ["routes.policies.jwtAuth"],
  oidc: ["routes.policies.oidc"],
  apiKey: ["routes.policies.apiKey"],
  remoteRateLimit: ["routes.policies.remoteRateLimit"],
  "route policies": ["routes.policies"],
  "backend policies": ["routes.backends.policies"],
  frontendPolicies: ["frontendPolicies"],
  config: ["config"],
  "policies[].target": ["policies.target"],
  "Listener tls": ["binds.listeners.tls"],
};

const BACKEND = "backends: [{host: 127.0.0.1:9000}]";
const route = (policies: string): string =>
  `gateways: {web: {port: 8080}}\nroutes: [{gateways: web, policies: ${policies}, ${BACKEND}}]\n`;
const backend = (policies: string): string =>
  `gateways: {web: {port: 8080}}\nroutes: [{gateways: web, backends: [{host: 127.0.0.1:9000, policies: ${policies}}]}]\n`;
const settings = (config: string): string => `config: ${config}\n`;

const CLOUD =
  /needs credentials from a cloud, which tracegate does not support; use key, jwtSign or oauthTokenExchange/;
const SPIFFE = /there is no SPIFFE agent to ask for certificates; use cert, key and root/;
const MESH = /tracegate does not join a service mesh; remove it/;
const NO_EFFECT = /belongs to .*; it has no effect here/;

const clouds = ["gcp: {type: idToken}", "aws: {accessKeyId: a, secretAccessKey: b}", "azure: {implicit: {}}"];
/** Settings of other modes, which do no harm. */
const unused = [
  "session: {key: 00}",
  "hbone: {windowSize: 1}",
  "serviceAccount: a",
  "trustDomain: a",
  "additionalTrustDomains: a",
  "skipValidateTrustDomain: true",
  "standardAttributes: {user: jwt.sub}",
];
const nameOf = (field: string): string => field.slice(0, field.indexOf(":"));

export const UNSUPPORTED: readonly UnsupportedField[] = [
  {
    field: "routes.backends.aws",
    config: "gateways: {web: {port: 8080}}\nroutes: [{gateways: web, backends: [{aws: {}}]}]\n",
    message: /cloud services are not supported as backends; use host/,
  },
  ...clouds.flatMap((cloud) => [
    {
      field: `routes.policies.backendAuth.${nameOf(cloud)}`,
      config: route(`{backendAuth: {${cloud}}}`),
      message: CLOUD,
    },
    {
      field: `routes.backends.policies.backendAuth.${nameOf(cloud)}`,
      config: backend(`{backendAuth: {${cloud}}}`),
      message: CLOUD,
    },
  ]),
  { field: "routes.policies.backendTLS.spiffe", config: route("{backendTLS: {spiffe: {}}}"), message: SPIFFE },
  {
    field: "routes.backends.policies.backendTLS.spiffe",
    config: backend("{backendTLS: {spiffe: {}}}"),
    message: SPIFFE,
  },
  {
    field: "binds.listeners.tls.spiffe",
    config: "binds: [{port: 1, listeners: [{protocol: HTTPS, tls: {spiffe: {}}, routes: []}]}]\n",
    message: SPIFFE,
  },
  {
    field: "routes.policies.apiKey.keys.allowedModels",
    config: route("{apiKey: {keys: [{key: a, allowedModels: [b]}]}}"),
    message: /tracegate does not route to language models; remove it/,
  },
  { field: "config.spiffe", config: settings("{spiffe: {endpoint: a}}"), message: MESH },
  { field: "config.caAddress", config: settings("{caAddress: a}"), message: MESH },
  { field: "config.caAuthToken", config: settings("{caAuthToken: a}"), message: MESH },
  {
    field: "config.localXdsPath",
    config: settings("{localXdsPath: a}"),
    message: /the file given with -f is the configuration; remove it/,
  },
  ...unused.map((field) => ({
    field: `config.${nameOf(field)}`,
    config: settings(`{${field}}`),
    message: NO_EFFECT,
    warned: true as const,
  })),
  {
    field: "policies.target.listenerSet",
    config: "policies: [{name: {name: a}, target: {listenerSet: {name: b, namespace: c}}, policy: {csrf: {}}}]\n",
    message: /there are no listener sets in a file; target a gateway/,
  },
];

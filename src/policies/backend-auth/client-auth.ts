import { hash, randomUUID, X509Certificate } from "node:crypto";
import { type ConfigPath, PolicyError } from "../contract/policy-error.ts";
import type { ClientAuth } from "../schema/token-endpoint.ts";
import { tokenSigner } from "./signing.ts";

const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/** Seconds. Each call has its own assertion, so this only covers the call and clock skew. */
const ASSERTION_LIFETIME = 300;

/** What a call to a token endpoint carries to authenticate the gateway. */
interface ClientCredentials {
  readonly headers: readonly string[];
  readonly form: readonly (readonly [string, string])[];
}

/** Makes the credentials of one call. */
export type Authenticate = () => ClientCredentials | Promise<ClientCredentials>;

/**
 * Client authentication at a token endpoint: by secret (RFC 6749, section 2.3.1) or by signed assertion (RFC 7523, section 2.2). Throws
 * PolicyError, whose path begins with `path`, for an invalid key.
 */
export function clientAuthentication(config: ClientAuth | undefined, path: ConfigPath): Authenticate {
  if (config === undefined) return () => ({ headers: [], form: [] });
  if (config.method === "privateKeyJwt") return assertions(config, path);
  const { clientId, method, clientSecret: secret = "" } = config;
  // Files usually end with a line break, which is not part of the secret.
  const clientSecret = secret.replace(/\r?\n$/, "");
  if (method === "clientSecretPost") {
    const sent = clientSecret === "" ? [] : [["client_secret", clientSecret] as const];
    const credentials: ClientCredentials = { headers: [], form: [["client_id", clientId], ...sent] };
    return () => credentials;
  }
  const pair = `${formEncoded(clientId)}:${formEncoded(clientSecret)}`;
  const basic = { headers: ["authorization", `Basic ${Buffer.from(pair).toString("base64")}`], form: [] };
  return () => basic;
}

/** `jti` makes each assertion unique, so that the endpoint can reject replays (RFC 7523, section 3). */
function assertions(
  config: Extract<ClientAuth, { method: "privateKeyJwt" }>,
  path: ConfigPath,
): () => Promise<ClientCredentials> {
  const { clientId, assertionAudience } = config;
  const sign = tokenSigner(config, path);
  const header = certificateHeader(config, path);
  return async () => {
    const iat = Math.floor(Date.now() / 1000);
    const claims = { iss: clientId, sub: clientId, aud: assertionAudience, jti: randomUUID(), iat };
    const assertion = await sign({ ...claims, exp: iat + ASSERTION_LIFETIME }, header);
    return {
      headers: [],
      form: [
        ["client_id", clientId],
        ["client_assertion_type", ASSERTION_TYPE],
        ["client_assertion", assertion],
      ],
    };
  };
}

/** The certificate chain, or its SHA-256 thumbprint, for the header of assertions (RFC 7515, sections 4.1.6 and 4.1.8). */
function certificateHeader(
  { certificate, certificateHeader: name }: Extract<ClientAuth, { method: "privateKeyJwt" }>,
  path: ConfigPath,
): Readonly<Record<string, unknown>> {
  if (certificate === undefined) return {};
  const chain = readChain(certificate, path);
  const [leaf] = chain;
  if (leaf === undefined) throw PolicyError.at([...path, "certificate"], "has no certificate; write one in PEM");
  if (name === "x5c") return { x5c: chain.map((each) => each.raw.toString("base64")) };
  return { "x5t#S256": hash("sha256", leaf.raw, "base64url") };
}

function readChain(pem: string, path: ConfigPath): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    throw PolicyError.at([...path, "certificate"], "cannot be read; write certificates in PEM");
  }
}

/** Encoded as in forms: RFC 6749, section 2.3.1, requires it for both parts of Basic, unlike RFC 7617. */
function formEncoded(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}

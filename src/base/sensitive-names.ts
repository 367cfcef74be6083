/**
 * Lower-case names of headers whose values are always secret (RFC 9110 11.6.2, 11.7.1; RFC 6265), with the customary API key. Pages that
 * cannot set Authorization on a WebSocket send their token as a protocol (`base64url.bearer.authorization.k8s.io.…`).
 */
export const SENSITIVE_HEADERS = [
  "authorization",
  "cookie",
  "set-cookie",
  "proxy-authorization",
  "sec-websocket-protocol",
  "x-api-key",
] as const;

/** Words that mark a name as that of a secret: `x-amz-security-token`, `clientSecret`, `JSESSIONID`; `max_tokens` is a number. */
const SECRET_WORD =
  /token(?!s\b|iz)|^dpop$|^x-auth$|oidc-data$|authentication$|secret|passw|passphrase|passcode|pwd|credential|signature|session|jwt|assertion|authorization|cookie|(?:api|access|private|shared|auth|subscription|functions|account|master)[-_]?key|(?:auth|otp|mfa|device|verification|activation|recovery|reset|invite)[-_]?code|code[-_]?verifier|[cx]srf|(?:^|[-_.])(?:sig|otp|pin|pass|bearer)$/i;
/** Short parameter names in URLs that stand for secrets: an authorization code (RFC 6749 4.1.2), a key, a ticket of CAS. */
const SECRET_PARAMETER = /^(?:code|key|auth|ticket|samlresponse)$/i;
/** `user[password]` and `code[]`, as PHP and Rails name the fields of lists and objects. */
const BRACKETS = /\[[^\]]*\]$/;
/** The end of the names of binary metadata in gRPC. */
const BINARY = /-bin$/;
/** CORS fields (Fetch 3.3) that contain such a word but no secret. */
const PUBLIC = new Set(["access-control-allow-credentials"]);

/** Cached results by name: most requests use the same names. Clients choose them, so both caches are bounded. */
const MAX_NAMES = 2_000;
const MAX_LENGTH = 64;

function remembering(isSecret: (name: string) => boolean): (name: string) => boolean {
  const known = new Map<string, boolean>();
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const secret = isSecret(name);
    if (known.size < MAX_NAMES && name.length <= MAX_LENGTH) known.set(name, secret);
    return secret;
  };
}

const looksSecret = remembering((name) => SECRET_WORD.test(name.replace(BINARY, "")) && !PUBLIC.has(name));
const looksSecretInUrl = remembering((name) => {
  const plain = name.replace(BRACKETS, "");
  return SECRET_WORD.test(name) || SECRET_WORD.test(plain) || SECRET_PARAMETER.test(plain);
});

/** Answers whether a name is one of a set. */
export type Names = Pick<ReadonlySet<string>, "has">;

/** Names whose values are redacted: the given ones, in lower case, and all names that look secret. */
export class SensitiveNames extends Set<string> {
  override has(name: string): boolean {
    return looksSecret(name) || this.lists(name);
  }

  /** Whether the name is one of those that were given. */
  protected lists(name: string): boolean {
    return this.size > 0 && (super.has(name) || super.has(name.toLowerCase()));
  }
}

/** As `SensitiveNames`, for parameters of URLs. */
export class SensitiveParameters extends SensitiveNames {
  override has(name: string): boolean {
    return looksSecretInUrl(name) || this.lists(name);
  }
}

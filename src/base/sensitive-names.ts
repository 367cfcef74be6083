/** Lower-case names of headers whose values are always secret (RFC 9110 11.6.2, 11.7.1; RFC 6265), with the customary API key. */
export const SENSITIVE_HEADERS = ["authorization", "cookie", "set-cookie", "proxy-authorization", "x-api-key"] as const;

/** Words that mark a name as that of a secret: `x-amz-security-token`, `clientSecret`, `JSESSIONID`; `max_tokens` is a number. */
const SECRET_WORD =
  /token(?!s\b|iz)|^dpop$|^x-auth$|oidc-data$|authentication$|secret|passw|passphrase|pwd|credential|signature|session|jwt|assertion|authorization|cookie|(?:api|access|private|shared|auth|subscription|functions|account|master)[-_]?key|(?:^|[-_.])(?:sig|otp)$/i;
/** Parameters of URLs that are short for a secret: an authorization code (RFC 6749 4.1.2), a key. */
const SECRET_PARAMETER = /^(?:code|key|auth)$/i;
/** CORS fields (Fetch 3.3) that contain such a word but no secret. */
const PUBLIC = new Set(["access-control-allow-credentials"]);

/** Names whose values are redacted: the given ones, and all that look like the name of a secret. */
export class SensitiveNames extends Set<string> {
  override has(name: string): boolean {
    return super.has(name) || (SECRET_WORD.test(name) && !PUBLIC.has(name));
  }
}

/** As `SensitiveNames`, for parameters of URLs. */
export class SensitiveParameters extends SensitiveNames {
  override has(name: string): boolean {
    return super.has(name) || SECRET_PARAMETER.test(name);
  }
}

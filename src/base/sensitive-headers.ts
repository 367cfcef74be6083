/** Lower-case names of headers whose values are always secret (RFC 9110 11.6.2, 11.7.1; RFC 6265), with the customary API key. */
export const SENSITIVE_HEADERS = ["authorization", "cookie", "set-cookie", "proxy-authorization", "x-api-key"] as const;

/** `frontendPolicies.http.maxBufferedBytes` when nothing else is said: 32 bodies of the largest size that is buffered by default. */
export const DEFAULT_BUFFERED_BYTES = 64 * 1024 * 1024;

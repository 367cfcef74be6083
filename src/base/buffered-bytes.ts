/** `frontendPolicies.http.maxBufferedBytes` by default, per worker: 32 bodies of the largest size that is buffered by default (2 MiB). */
export const DEFAULT_BUFFERED_BYTES = 64 * 1024 * 1024;

/** Whether a response's media type is one of those to compress. */

/**
 * Compressed only if it is listed by name, not by a pattern: event streams are open for hours, each with the memory of an encoder.
 */
const EVENT_STREAM = "text/event-stream";

/** Compiles the patterns `type/subtype`, `type/*` and `type/*+suffix`. The test takes the value of a Content-Type field. */
export function compileContentTypes(patterns: readonly string[]): (contentType: string) => boolean {
  const exact = new Set<string>();
  const wild: { readonly prefix: string; readonly suffix: string }[] = [];
  for (const pattern of patterns.map((each) => each.toLowerCase())) {
    const star = pattern.indexOf("*");
    if (star === -1) exact.add(pattern);
    else wild.push({ prefix: pattern.slice(0, star), suffix: pattern.slice(star + 1) });
  }
  return (contentType) => {
    const semicolon = contentType.indexOf(";");
    const type = (semicolon === -1 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
    // gRPC compresses its messages itself, and its clients know no Content-Encoding.
    if (type.startsWith("application/grpc")) return false;
    if (exact.has(type)) return true;
    return type !== EVENT_STREAM && wild.some(({ prefix, suffix }) => type.startsWith(prefix) && type.endsWith(suffix));
  };
}

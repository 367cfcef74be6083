/** An object of unknown fields: what a trace event is to a client that must tolerate every build of the proxy. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value as an object; anything else reads as an empty one. */
export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** A part of a configuration that cannot be applied, by its key, and why. */
export type RejectedPart = ({ readonly listener: string } | { readonly bind: string }) & { readonly reason: string };

/** A configuration cannot be applied because of some of its parts, all of which are known; the others may be valid. */
export class RejectedParts extends Error {
  readonly parts: readonly RejectedPart[];

  constructor(parts: readonly RejectedPart[], options?: ErrorOptions) {
    super(parts[0]?.reason, options);
    this.parts = parts;
  }
}

/** `T` of `requestHeaderModifier` and `responseHeaderModifier` (reference 3.13); applied in the order add, set, remove. */
export interface HeaderModifier {
  readonly add?: Readonly<Record<string, string>>;
  readonly set?: Readonly<Record<string, string>>;
  readonly remove?: readonly string[];
}

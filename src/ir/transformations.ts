/** One side of Transformations; the texts are CEL. */
export interface Transformation {
  readonly add?: Readonly<Record<string, string>>;
  readonly set?: Readonly<Record<string, string>>;
  readonly remove?: readonly string[];
  readonly replace?: string;
  readonly body?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Reference 3.10. */
export interface Transformations {
  readonly request?: Transformation;
  readonly response?: Transformation;
}

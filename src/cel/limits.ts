/** How deeply one expression, or the body of one function, may be nested, and how many parts it may have. */
export const LIMITS = { depth: 100, nodes: 2000 };

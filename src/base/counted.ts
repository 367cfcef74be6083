/** `1 route`, `2 routes`. `what` forms its plural with an s. */
export function counted(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

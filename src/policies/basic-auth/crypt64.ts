/** The alphabet of crypt(3), which is not that of base64. */
const ALPHABET = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** The lowest `count` groups of six bits, the lowest first. */
export function encode64(bits: number, count: number): string {
  let text = "";
  for (let i = 0; i < count; i++) text += ALPHABET[(bits >> (6 * i)) & 63];
  return text;
}

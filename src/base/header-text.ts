/**
 * The value of a header field as its sender meant it: messages hold each byte as one character (ISO 8859-1, as HTTP defines it), and what is
 * valid UTF-8 was meant as UTF-8. Other values stay as they are, also decoded ones.
 */
export function readableValue(value: string): string {
  if (!/[\u0080-\u00ff]/.test(value) || /[\u0100-\uffff]/.test(value)) return value;
  try {
    return UTF8.decode(Uint8Array.from(value, (character) => character.charCodeAt(0)));
  } catch {
    return value;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

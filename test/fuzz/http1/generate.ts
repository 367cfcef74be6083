/** Makes streams of pipelined requests from a seed: well-formed ones, some of them then damaged. */
import { Dice } from "../dice.ts";

const METHODS_USED = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "M-SEARCH", "QUERY"];
const TARGETS = [
  "/",
  "/a/b?c=d",
  "/a%2fb;x=1",
  "http://a.example/p?q",
  "HTTPS://a.example:8443",
  "/?{}|",
  "/-._~!$&'()*+,;=:@",
];
const NAMES = [
  "accept",
  "X-A",
  "x_b",
  "Cookie",
  "content-type",
  "via",
  "x-forwarded-for",
  "!#$%&'*+-.^_`|~9",
  "Keep-Alive",
  "TE",
];
const VALUES = [
  "",
  "a",
  "a b\tc",
  "a, b;q=0.5",
  '"quoted \\" text"',
  "trailers",
  "\x80\xff",
  "x".repeat(40),
  "5",
  "chunked",
];
const CONNECTIONS = [
  "keep-alive",
  "close",
  "Keep-Alive, x-a",
  "upgrade",
  "Upgrade, X-B",
  ", ,keep-alive,",
  "cookie",
  "TE",
];
/** Inserted or put in the place of other bytes: what parsers have been seen to disagree about. */
const FRAGMENTS = [
  "\r\n",
  "\r",
  "\n",
  "\0",
  " ",
  "\t",
  ":",
  ",",
  ";",
  '"',
  "\\",
  "\x0b",
  "\x7f",
  "\x80",
  "\xa0",
  "0",
  "1",
  "f",
  "-",
  "+",
  "_",
  "\r\n\r\n",
  "\r\n ",
  "\r\n\t",
  "\n\r\n",
  "0\r\n\r\n",
  "5\r\nhello\r\n",
  "0x5",
  " : ",
  "chunked",
  "identity",
  "gzip, ",
  "Content-Length: 5\r\n",
  "content-length:3\r\n",
  "Transfer-Encoding: chunked\r\n",
  "transfer-encoding:\tchunked \r\n",
  "Transfer-Encoding: identity\r\n",
  "Transfer-Encoding : chunked\r\n",
  "Connection: close\r\n",
  "Connection: content-length\r\n",
  "Host: b\r\n",
  "Upgrade: websocket\r\nConnection: upgrade\r\n",
  "Expect: 100-continue\r\n",
  "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
  "HTTP/1.1",
  "HTTP/1.0",
  "HTTP/0.9",
  "HTTP/2.0",
  "POST ",
  ";a=b",
  ';a="b;\\"c"',
  "x:y\r\n",
  "000000000000000",
];

/** A stream of one to four requests for `seed`. */
export function generateStream(seed: number): Buffer {
  const dice = new Dice(seed);
  let text = "";
  for (let n = 1 + dice.below(4); n > 0; n--) text += request(dice);
  // A third stays well-formed, so that long runs of requests are compared too.
  for (let n = dice.chance(0.33) ? 0 : 1 + dice.below(3); n > 0; n--) text = damage(dice, text);
  return Buffer.from(text, "latin1");
}

function request(dice: Dice): string {
  const fields = [`Host: ${dice.of(["a.example", "a:80", "[::1]:8080", "127.0.0.1"])}`];
  for (let n = dice.below(6); n > 0; n--)
    fields.push(`${dice.of(NAMES)}:${blanks(dice)}${dice.of(VALUES)}${blanks(dice)}`);
  if (dice.chance(0.3)) fields.push(`Connection: ${dice.of(CONNECTIONS)}`);
  if (dice.chance(0.1)) fields.push("Upgrade: h2c");
  if (dice.chance(0.02)) fields.push(...Array.from({ length: 60 }, (_, i) => `x-${i}: ${i}`));
  const body = dice.repeat(3, () => dice.of(["hello", "\r\n", "0\r\n\r\n", "GET / HTTP/1.1\r\n", "\0\xff"]));
  let payload = "";
  if (dice.chance(0.35)) {
    fields.push(dice.of(["Transfer-Encoding: chunked", "transfer-encoding:Chunked", "TRANSFER-ENCODING: \tCHUNKED"]));
    payload = chunked(dice, body);
  } else if (dice.chance(0.5)) {
    fields.push(`Content-Length:${blanks(dice)}${body.length}`);
    payload = body;
  }
  // The order of fields must not matter.
  const rotation = dice.below(fields.length);
  const rotated = [...fields.slice(rotation), ...fields.slice(0, rotation)];
  const version = dice.chance(0.1) ? "HTTP/1.0" : "HTTP/1.1";
  const start = dice.chance(0.05) ? "\r\n" : "";
  return `${start}${dice.of(METHODS_USED)} ${dice.of(TARGETS)} ${version}\r\n${rotated.join("\r\n")}\r\n\r\n${payload}`;
}

function blanks(dice: Dice): string {
  return dice.of(["", " ", " ", " ", "\t", " \t "]);
}

function chunked(dice: Dice, body: string): string {
  let text = "";
  for (let at = 0; at < body.length; ) {
    const data = body.slice(at, at + 1 + dice.below(body.length));
    const size = data.length.toString(16).padStart(1 + dice.below(3), "0");
    text += `${dice.chance(0.5) ? size : size.toUpperCase()}${extension(dice)}\r\n${data}\r\n`;
    at += data.length;
  }
  const trailers = dice.chance(0.3) ? dice.repeat(2, () => `x-t:${blanks(dice)}${dice.of(VALUES)}\r\n`) : "";
  return `${text}${dice.of(["0", "00"])}${extension(dice)}\r\n${trailers}\r\n`;
}

function extension(dice: Dice): string {
  return dice.chance(0.2) ? dice.of([";a", ";a=b", ';a="b c"', ';a="\\"";b=c', ";a;b;c"]) : "";
}

function damage(dice: Dice, text: string): string {
  const at = dice.below(text.length);
  const length = dice.of([0, 0, 1, 1, 2, 5]);
  switch (dice.below(5)) {
    case 0:
      return text.slice(0, at) + String.fromCharCode(dice.below(256)) + text.slice(at + 1);
    case 1:
      return text.slice(0, at) + text.slice(at + 1 + length);
    case 2: {
      const copied = text.slice(at, at + 1 + dice.below(30));
      const to = dice.below(text.length);
      return text.slice(0, to) + copied + text.slice(to);
    }
    case 3: {
      // At the start of a line, where a fragment that is a field makes another head.
      const line = text.indexOf("\r\n", at);
      return line < 0 ? text : `${text.slice(0, line + 2)}${dice.of(FRAGMENTS)}${text.slice(line + 2)}`;
    }
    default:
      return text.slice(0, at) + dice.of(FRAGMENTS) + text.slice(at + length);
  }
}

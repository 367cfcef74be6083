import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileProblem } from "../base/file-problem.ts";
import { certificatesIn } from "../tls/assumed-certificate.ts";
import { BadFacts, type BadPart } from "./facts.ts";

/** What is assumed by a file: people write its name, a question has its certificates. */
const BY_FILE = "clientCertificate";

/**
 * The value of an assumption; the certificates of a file if it is one that people name by a file, relative to `folder`. A private key that is
 * in the file too is left out. Throws BadFacts for a file that cannot be read, or has no certificate.
 */
export function assumedByFile(name: string, value: unknown, folder = "."): unknown {
  if (name !== BY_FILE || typeof value !== "string") return value;
  const about = { assume: name };
  const pem = pemOf(value, folder, about);
  try {
    const certificates = certificatesIn(pem);
    if (certificates.length > 0) return certificates.join("");
  } catch {
    // The same to whoever wrote it.
  }
  const file = pem === value ? "the text" : value;
  throw new BadFacts(`${file} has no certificate`, "write the path of a file with the certificate as PEM", about);
}

/** PEM, or that of the file that a text names. Throws BadFacts for one that cannot be read. */
export function pemOf(text: string, folder: string, about: BadPart): string {
  if (text.includes("-----BEGIN ")) return text;
  try {
    return readFileSync(resolve(folder, text), "utf8");
  } catch (error) {
    throw new BadFacts(`cannot read ${text}: ${fileProblem(error)}`, "write the path of a file with PEM", about);
  }
}

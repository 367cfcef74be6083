import { X509Certificate } from "node:crypto";

const BEGIN = /^-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----/;

/** The certificates of a PEM file in their order; undefined in place of one that cannot be read. */
export function certificatesIn(pem: string): readonly (X509Certificate | undefined)[] {
  const blocks = pem.split(/^(?=-----BEGIN )/m).filter((block) => BEGIN.test(block));
  return blocks.map(readCertificate);
}

/**
 * Why not every certificate of a PEM file can be read; undefined if all can. OpenSSL leaves out the first CA that it cannot read and
 * all after it, without an error.
 */
export function certificatesProblem(pem: string): string | undefined {
  const certificates = certificatesIn(pem);
  if (certificates.length === 0) return "the file has no certificate";
  const broken = certificates.indexOf(undefined);
  if (broken === -1) return undefined;
  const which = certificates.length === 1 ? "the certificate" : `certificate ${broken + 1} of ${certificates.length}`;
  return `${which} in the file is incomplete or damaged`;
}

/** The first certificate of `pem`; undefined if `pem` has no valid certificate. */
export function readCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

import type { CertificatesAnswer } from "../../admin/plane/certificates.ts";

/** Each certificate once; replicas that have not applied the newest state yet may have others. */
export function mergeCertificates(answers: readonly CertificatesAnswer[]): CertificatesAnswer {
  const all = answers.flatMap(({ certificates }) => certificates);
  return { certificates: [...new Map(all.map((each) => [JSON.stringify(each), each])).values()] };
}

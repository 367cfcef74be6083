import { codeOf, messageOf } from "./errors.ts";

/** Of errors of the file system; the errors of a socket with a path have some of these codes too. */
const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  ENOTDIR: "it does not exist, because a part of its path is not a folder",
  EISDIR: "it is a folder",
  EACCES: "not permitted",
  EPERM: "not permitted",
  EEXIST: "it exists already",
  ELOOP: "its symbolic links lead to each other",
  ENAMETOOLONG: "its name is too long",
  EROFS: "its file system is read-only",
  ENOSPC: "its file system is full",
  EDQUOT: "the quota of this user is used up",
  EFBIG: "it is too large",
  EMFILE: "this process has too many open files",
  ENFILE: "the system has too many open files",
};

/** Why a file cannot be read or written, for a sentence that names it, such as `cannot read a.pem: it does not exist`. */
export function fileProblem(error: unknown): string {
  return PROBLEMS[codeOf(error) ?? ""] ?? messageOf(error);
}

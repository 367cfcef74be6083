/** The static table of HPACK (RFC 7541 appendix A). Entries of one name are neighbours. */

const ENTRIES = `
:authority
:method GET
:method POST
:path /
:path /index.html
:scheme http
:scheme https
:status 200
:status 204
:status 206
:status 304
:status 400
:status 404
:status 500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate`;

/** Index → name; an entry's index is its place in the table of the RFC, so the first one is empty. */
export const STATIC_NAMES: readonly string[] = ENTRIES.split("\n").map((line) => line.split(" ", 1)[0] ?? "");

/** Index → value; empty for most entries. */
export const STATIC_VALUES: readonly string[] = ENTRIES.split("\n").map((line) => line.split(" ").slice(1).join(" "));

/** Number of entries: the newest entry of the dynamic table has the next index. */
export const STATIC_SIZE: number = STATIC_NAMES.length - 1;

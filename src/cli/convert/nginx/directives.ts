/** Directives of nginx that are not converted. */

/** Those that the conversion reads; of `grpc_pass`, by the names of `proxy_pass`. */
const READ = new Set([
  "server_name",
  "listen",
  "ssl",
  "ssl_certificate",
  "ssl_certificate_key",
  "ssl_protocols",
  "ssl_client_certificate",
  "ssl_verify_client",
  "location",
  "proxy_pass",
  "proxy_set_header",
  "proxy_hide_header",
  "proxy_http_version",
  "proxy_read_timeout",
  "proxy_connect_timeout",
  "proxy_next_upstream",
  "proxy_next_upstream_tries",
  "proxy_intercept_errors",
  "proxy_ssl_verify",
  "proxy_ssl_name",
  "proxy_ssl_server_name",
  "proxy_ssl_trusted_certificate",
  "ssl_trusted_certificate",
  "proxy_ssl_certificate",
  "proxy_ssl_certificate_key",
  "client_max_body_size",
  "add_header",
  "auth_basic",
  "auth_basic_user_file",
  "allow",
  "deny",
  "satisfy",
  "limit_conn",
  "limit_conn_zone",
  "limit_conn_status",
  "limit_req",
  "limit_req_zone",
  "limit_req_status",
  "gzip",
  "gzip_min_length",
  "gzip_types",
  "return",
  "rewrite",
  "error_page",
  "default_type",
  "upstream",
  "server",
  "root",
  "if",
]);

const OWN = "the gateway does this itself";
const PROCESS = "it is about the process of nginx";
const FILES = "it is about files";

/** Directives that can be left out without loss, with the reason. */
const IDLE: ReadonlyMap<string, string> = new Map([
  ...[
    "user",
    "worker_processes",
    "worker_rlimit_nofile",
    "pid",
    "events",
    "load_module",
    "daemon",
    "master_process",
  ].map((name) => [name, PROCESS] as const),
  ...["worker_cpu_affinity", "lock_file", "error_log", "types_hash_max_size", "server_names_hash_bucket_size"].map(
    (name) => [name, PROCESS] as const,
  ),
  ...["server_names_hash_max_size", "variables_hash_max_size", "map_hash_bucket_size", "server_tokens"].map(
    (name) => [name, PROCESS] as const,
  ),
  ...["sendfile", "aio", "directio", "open_file_cache", "types", "charset", "index", "autoindex"].map(
    (name) => [name, FILES] as const,
  ),
  ...["sendfile_max_chunk", "output_buffers", "tcp_nopush", "open_file_cache_valid", "etag", "try_files"].map(
    (name) => [name, FILES] as const,
  ),
  ...["tcp_nodelay", "keepalive", "keepalive_timeout", "keepalive_requests", "proxy_buffering"].map(
    (name) => [name, OWN] as const,
  ),
  ...["proxy_buffers", "proxy_buffer_size", "proxy_busy_buffers_size", "proxy_request_buffering", "http2", "zone"].map(
    (name) => [name, OWN] as const,
  ),
  ...["proxy_send_timeout", "client_body_buffer_size", "client_header_buffer_size", "large_client_header_buffers"].map(
    (name) => [name, OWN] as const,
  ),
  ...["send_timeout", "client_body_timeout", "client_header_timeout", "reset_timedout_connection", "resolver"].map(
    (name) => [name, OWN] as const,
  ),
  ...["resolver_timeout", "gzip_vary", "gzip_proxied", "gzip_comp_level", "gzip_buffers", "gzip_http_version"].map(
    (name) => [name, OWN] as const,
  ),
  ...["gzip_disable", "ssl_session_cache", "ssl_session_timeout", "ssl_session_tickets", "ssl_dhparam"].map(
    (name) => [name, OWN] as const,
  ),
  ...["ssl_prefer_server_ciphers", "ssl_ecdh_curve", "proxy_ssl_session_reuse"].map((name) => [name, OWN] as const),
  ...["keepalive_time", "proxy_cache_bypass", "proxy_no_cache", "proxy_max_temp_file_size", "absolute_redirect"].map(
    (name) => [name, OWN] as const,
  ),
]);

export function isRead(name: string): boolean {
  return READ.has(asProxy(name));
}

/** Why nothing is lost without a directive; undefined: something may be. */
export function whyIdle(name: string): string | undefined {
  return IDLE.get(name) ?? IDLE.get(asProxy(name));
}

/** `proxy_read_timeout` for `grpc_read_timeout`: the two modules have the same directives. */
export function asProxy(name: string): string {
  return name.replace(/^grpc_/, "proxy_");
}

/** Families of directives whose loss admits no request that was kept out. */
const OPEN = new RegExp(
  `^(?:${[
    "(?:proxy|fastcgi|uwsgi|scgi|grpc|memcached|gzip|gunzip|brotli|zstd|http2|http3|quic|keepalive|client|lingering)_\\w+",
    "(?:open_file_cache|sub_filter|add|log|limit_rate|charset|mirror|real_ip|msie|userid|secure_link|geoip2?|otel)_\\w+",
    "(?:opentracing|opentelemetry|vhost_traffic|image_filter|xslt|ssi|addition|dav)_\\w+|ssl_(?!crl$|ocsp$)\\w+",
    "lua_\\w+|init_(?:worker_)?by_lua\\w*|js_(?:import|path|set|var|preload_object|fetch\\w*)|perl_(?:modules|require|set)",
    "\\w+_(?:zone|hash_bucket_size|hash_max_size|log_level|dry_run|status|pool_size)|limit_rate|geoip2?|ssi|set_by_lua\\w*",
    "break|slice|chunked_transfer_encoding|if_modified_since|ignore_invalid_headers|underscores_in_headers|merge_slashes",
    "port_in_redirect|server_name_in_redirect|recursive_error_pages|postpone_output|read_ahead|max_ranges|send_lowat",
    "directio_alignment|aio_write|override_charset|source_charset|random_index|rewrite_log|uninitialized_variable_warn",
    "valid_referers|more_(?:set|clear)_headers|empty_gif|flv|mp4|api|health_check|variables_\\w+",
  ].join("|")})$`,
);

/**
 * Whether a directive that is not converted may keep requests out. A directive that is not known may do so: it can be one of a module,
 * such as `access_by_lua_file`.
 */
export function mayRestrict(name: string): boolean {
  if (RESTRICTIONS.has(name)) return true;
  return !isRead(name) && whyIdle(name) === undefined && !REMEDIES.has(name) && !OPEN.test(name);
}

/** Those that keep requests out, and have a remedy. */
const RESTRICTIONS = new Set(["auth_request", "auth_jwt", "internal"]);

/** What to do instead of others. */
export const REMEDIES: ReadonlyMap<string, string> = new Map([
  ["access_log", "log to standard output, or set frontendPolicies.accessLog"],
  ["log_format", "choose fields in frontendPolicies.accessLog"],
  ["ssl_ciphers", "set tls.cipherSuites by the names of the standard"],
  ["ssl_stapling", "set tls.ocspStaple to a file that a timer renews"],
  ["ssl_stapling_verify", "set tls.ocspStaple to a file that a timer renews"],
  ["limit_rate", "the gateway does not slow responses down"],
  ["proxy_cache", "put a cache behind the gateway"],
  ["proxy_cache_path", "put a cache behind the gateway"],
  ["proxy_cache_valid", "put a cache behind the gateway"],
  ["fastcgi_pass", "put a server that speaks HTTP before the application"],
  ["uwsgi_pass", "let the application listen for HTTP"],
  ["scgi_pass", "let the application listen for HTTP"],
  ["auth_request", "use extAuthz, or oidc"],
  ["auth_jwt", "use jwtAuth"],
  ["map", "write the choice in CEL where it is used"],
  ["geo", "use ipAccess, or cidr() in CEL"],
  ["split_clients", "give backends a weight"],
  ["mirror", "use requestMirror"],
  ["sub_filter", "use transformations.response.body"],
  ["set", "write the value in CEL where it is used"],
  ["set_real_ip_from", "list the network in frontendPolicies.http.forwarded.trustedProxies"],
  ["real_ip_header", "set frontendPolicies.http.forwarded.trustedProxies"],
  ["stream", "write tcpRoutes"],
  ["mail", "mail is not HTTP; keep nginx for it"],
  ["alias", "the gateway serves no files: keep a file server behind it"],
  ["internal", "leave the route out: only the gateway's own redirects would lead to it"],
  ["proxy_cookie_path", "rewrite set-cookie by transformations.response"],
  ["proxy_cookie_domain", "rewrite set-cookie by transformations.response"],
  ["proxy_pass_header", "the gateway passes all header fields of a response"],
  ["expires", "set cache-control by responseHeaderModifier"],
  ["proxy_redirect", "let the backend write relative locations, or change location by transformations.response"],
  ["stub_status", "the gateway's metrics are on its stats server"],
]);

export const FILES_REMEDY = "the gateway serves no files: keep a file server behind it, and name it in backends";

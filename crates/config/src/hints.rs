//! Suggestions for unknown words: similar words, and the words of other products for the same thing.

/// Words of other load balancers and of general language, with their equivalents here. A word may have several
/// equivalents; the one that is valid at its place is used.
const MEANINGS: &[(&str, &str)] = &[
    // Parts of the file.
    ("backend", "pool"),
    ("default_backend", "pool"),
    ("default_pool", "pool"),
    ("proxy_pass", "pool"),
    ("upstream", "pool"),
    ("use_backend", "pool"),
    ("backends", "pools"),
    ("clusters", "pools"),
    ("servicegroup", "pools"),
    ("service_groups", "pools"),
    ("upstreams", "pools"),
    ("endpoints", "members"),
    ("nodes", "members"),
    ("server", "members"),
    ("servers", "members"),
    ("targets", "members"),
    ("csvserver", "virtual_servers"),
    ("frontend", "virtual_servers"),
    ("frontends", "virtual_servers"),
    ("lbvserver", "virtual_servers"),
    ("listeners", "virtual_servers"),
    ("server_blocks", "virtual_servers"),
    ("vhosts", "virtual_servers"),
    ("virtuals", "virtual_servers"),
    ("bind", "listen"),
    ("destination", "listen"),
    ("port", "listen"),
    ("vip", "listen"),
    // Keys.
    ("acl", "policies"),
    ("http_request", "policies"),
    ("http_response", "policies"),
    ("irules", "policies"),
    ("responder", "policies"),
    ("rewrite", "policies"),
    ("check", "monitors"),
    ("health_check", "monitors"),
    ("health_checks", "monitors"),
    ("healthcheck", "monitors"),
    ("monitor", "monitors"),
    ("passwd", "password"),
    ("time_until_up", "up_delay"),
    ("username", "user"),
    ("rules", "policies"),
    ("priority_group", "priority"),
    ("backup", "priority"),
    ("disabled", "state"),
    ("slow_ramp", "slow_start"),
    ("slow_ramp_time", "slow_start"),
    ("min_active_members", "active_members_min"),
    ("loadbalancing", "balance"),
    ("mode", "type"),
    ("certificate", "certificates"),
    ("protocols", "min_version"),
    ("algorithm", "balance"),
    ("lb_method", "balance"),
    ("lb_policy", "balance"),
    ("load_balancing_mode", "balance"),
    ("keepalive", "reuse"),
    ("oneconnect", "reuse"),
    ("conn_limit", "connections_max"),
    ("max_conns", "connections_max"),
    ("maxconn", "connections_max"),
    ("maxconn", "connections"),
    ("rate_limit", "requests_per_second_max"),
    ("ratio", "weight"),
    ("uri", "path"),
    ("nbthread", "workers"),
    ("threads", "workers"),
    ("worker_processes", "workers"),
    ("logging", "log"),
    ("logs", "log"),
    ("cookie", "persistence"),
    ("persist", "persistence"),
    ("sticky", "persistence"),
    ("stick_table", "persistence"),
    ("limit_conn", "limits"),
    ("limit_req", "limits"),
    ("rate_limits", "limits"),
    ("gzip", "compression"),
    ("error_page", "error_pages"),
    ("errorfile", "error_pages"),
    ("clientssl", "tls"),
    ("ssl", "tls"),
    ("force_https", "https_redirect"),
    ("redirect_https", "https_redirect"),
    ("listen_policy", "allowed_clients"),
    ("listenpolicy", "allowed_clients"),
    ("allow", "allowed_clients"),
    ("allow_from", "allowed_clients"),
    ("snat", "source"),
    ("snatpool", "source"),
    ("source_address_translation", "source"),
    ("send_proxy", "proxy_protocol"),
    ("sni", "by_server_name"),
    ("client_max_body_size", "body_size_max"),
    ("max_body_size", "body_size_max"),
    ("large_client_header_buffers", "head_size_max"),
    ("client_body_timeout", "body_timeout"),
    ("client_header_timeout", "header_timeout"),
    ("proxy_connect_timeout", "connect_timeout"),
    ("timeout_connect", "connect_timeout"),
    ("proxy_read_timeout", "response_timeout"),
    ("timeout_server", "response_timeout"),
    ("keepalive_timeout", "idle_timeout"),
    ("timeout_client", "idle_timeout"),
    ("inter", "interval"),
    ("send_string", "send"),
    ("recv", "receive"),
    ("receive_string", "receive"),
    // Values.
    ("first", "round_robin"),
    ("ratio_member", "round_robin"),
    ("round_robin_member", "round_robin"),
    ("least_conn", "least_connections"),
    ("least_connection", "least_connections"),
    ("least_connections_member", "least_connections"),
    ("leastconn", "least_connections"),
    ("fastest_app_response", "least_response_time"),
    ("leastresponsetime", "least_response_time"),
    ("least_time", "least_response_time"),
    ("predictive_member", "least_response_time"),
    ("p2c", "random_two"),
    ("power_of_two", "random_two"),
    ("random", "random_two"),
    ("ip_hash", "source_address"),
    ("source", "source_address"),
    ("source_addr", "source_address"),
    ("sourceip", "source_address"),
    ("sourceiphash", "source_address"),
    ("ssl", "source_address"),
    ("ssl_session", "source_address"),
    ("sslsession", "source_address"),
    ("tls_session", "source_address"),
    ("dest_addr", "destination_address"),
    ("destip", "destination_address"),
    ("rule", "learned"),
    ("store_response", "learned"),
    ("universal", "learned"),
    ("cookie_insert", "cookie"),
    ("cookie_insert", "insert"),
    ("cookieinsert", "cookie"),
    ("cookie_hash", "cookie"),
    ("cookie_hash", "passive"),
    ("gateway_icmp", "icmp"),
    ("ping", "icmp"),
    ("tcp_ecv", "tcp"),
    ("tcp_half_open", "tcp"),
    ("automap", "auto"),
    ("client", "off"),
    ("down", "disabled"),
    ("draining", "drain"),
    ("maint", "disabled"),
    ("offline", "disabled"),
    ("up", "enabled"),
    // Actions.
    ("deny", "respond"),
    ("drop", "close"),
    ("http_redirect", "redirect"),
    ("reject", "reset"),
    ("return", "respond"),
    ("select_pool", "pool"),
    ("set_path", "rewrite_path"),
    ("set_uri", "rewrite_path"),
    ("silent_drop", "close"),
    ("tarpit", "rate_limit"),
    ("virtual", "virtual_server"),
    ("targetlbvserver", "virtual_server"),
    ("target_lbvserver", "virtual_server"),
    ("proxy_set_header", "set_header"),
    ("replace_path", "rewrite_path"),
];

/// Keys that are often written in a wrong place, and their correct places.
const PLACES: &[(&str, &str)] = &[
    ("body_size_max", "`http`"),
    ("body_timeout", "`http`"),
    ("head_size_max", "`http`"),
    ("header_timeout", "`http`"),
    ("headers_max", "`http`"),
    ("mss_max", "`fast_l4`"),
    ("tos", "`fast_l4`"),
    ("ttl", "`fast_l4`"),
    ("certificates", "`tls`"),
    ("ciphers", "`tls`"),
    ("connections_per_second", "`limits`"),
    ("requests_per_second", "`limits`"),
    ("trust", "`client_address`"),
    ("persistence", "a virtual server: `virtual_servers.NAME`"),
    ("balance", "a pool: `pools.NAME`"),
    ("members", "a pool: `pools.NAME`"),
    ("monitors", "a pool: `pools.NAME`"),
    ("passive", "a pool: `pools.NAME`"),
    ("requests_per_second_max", "a member: `members: [ { address: … } ]`"),
    ("weight", "a member: `members: [ { address: … } ]`"),
];

const VIRTUAL_SERVER: &str = "virtual_servers.NAME";
const POOL: &str = "pools.NAME";
const MEMBER: &str = "pools.NAME.members[]";

const HOST_IN_RULES: &str = "host names select pools in rules of `policies`: `when: 'request.host == \"shop.example\"'`; \
                             with `type: tcp` use `by_server_name`";
const LIMIT_OF_SERVER: &str = "write `limits: { connections: … }`";
const LIMIT_OF_ALL: &str = "each virtual server has its own limit: `limits: { connections: … }`";
const LIMIT_OF_MEMBERS: &str =
    "each member has its own limit: `members: [ { address: …, connections_max: … } ]`";
const PERSISTENCE_OF_SERVER: &str =
    "persistence belongs to a virtual server: `virtual_servers.NAME.persistence`";
const PROFILES_BY_KIND: &str = "each kind of profile has its own key, such as `http: NAME` or `tls: NAME`; \
                                profiles are defined in the top-level `profiles`";
const POOL_BY_NAME: &str = "write `pools: { NAME: { members: [ ADDRESS:PORT ] } }`";
const SERVER_BY_NAME: &str =
    "write `virtual_servers: { NAME: { listen: ADDRESS:PORT, pool: NAME } }`";
const RULES_OF_POLICIES: &str = "rules belong to policies: `policies: { NAME: { rules: [ … ] } }` at the top level, and \
                                 `policies: [ NAME ]` here";
const SOURCE_OF_POOL: &str = "the source address belongs to a pool: `pools.NAME.source`; without it, the kernel selects the address";

const CLIENTS_OF_SERVER: &str = "the clients that may connect: `allowed_clients: [ NETWORK, … ]`; the address of weir toward members is \
                                 `pools.NAME.source`";

/// Keys of other products without a key for the same thing in the same section: the section, the key, and the equivalent.
const EQUIVALENTS: &[(&str, &str, &str)] = &[
    ("", "backend", POOL_BY_NAME),
    ("", "frontend", SERVER_BY_NAME),
    ("", "maxconn", LIMIT_OF_ALL),
    ("", "server", SERVER_BY_NAME),
    ("", "upstream", POOL_BY_NAME),
    ("", "virtual", SERVER_BY_NAME),
    ("data_plane", "maxconn", LIMIT_OF_ALL),
    ("data_plane", "worker_connections", LIMIT_OF_ALL),
    (VIRTUAL_SERVER, "acl", RULES_OF_POLICIES),
    (VIRTUAL_SERVER, "http_request", RULES_OF_POLICIES),
    (VIRTUAL_SERVER, "http_response", RULES_OF_POLICIES),
    (VIRTUAL_SERVER, "rules", RULES_OF_POLICIES),
    (VIRTUAL_SERVER, "profile", PROFILES_BY_KIND),
    (VIRTUAL_SERVER, "profiles", PROFILES_BY_KIND),
    (VIRTUAL_SERVER, "host", HOST_IN_RULES),
    (VIRTUAL_SERVER, "hostname", HOST_IN_RULES),
    (VIRTUAL_SERVER, "hosts", HOST_IN_RULES),
    (VIRTUAL_SERVER, "server_name", HOST_IN_RULES),
    (VIRTUAL_SERVER, "server_names", HOST_IN_RULES),
    (VIRTUAL_SERVER, "conn_limit", LIMIT_OF_SERVER),
    (VIRTUAL_SERVER, "connection_limit", LIMIT_OF_SERVER),
    (VIRTUAL_SERVER, "connections_max", LIMIT_OF_SERVER),
    (VIRTUAL_SERVER, "max_conns", LIMIT_OF_SERVER),
    (VIRTUAL_SERVER, "maxclient", LIMIT_OF_SERVER),
    (VIRTUAL_SERVER, "maxconn", LIMIT_OF_SERVER),
    (VIRTUAL_SERVER, "source", CLIENTS_OF_SERVER),
    (VIRTUAL_SERVER, "source_address", CLIENTS_OF_SERVER),
    (VIRTUAL_SERVER, "source_range", CLIENTS_OF_SERVER),
    (VIRTUAL_SERVER, "snat", SOURCE_OF_POOL),
    (VIRTUAL_SERVER, "snatpool", SOURCE_OF_POOL),
    (VIRTUAL_SERVER, "source_address_translation", SOURCE_OF_POOL),
    (POOL, "cookie", PERSISTENCE_OF_SERVER),
    (POOL, "persist", PERSISTENCE_OF_SERVER),
    (POOL, "stick", PERSISTENCE_OF_SERVER),
    (POOL, "stick_table", PERSISTENCE_OF_SERVER),
    (POOL, "sticky", PERSISTENCE_OF_SERVER),
    (POOL, "fullconn", LIMIT_OF_MEMBERS),
    (POOL, "max_conns", LIMIT_OF_MEMBERS),
    (POOL, "maxconn", LIMIT_OF_MEMBERS),
    (MEMBER, "cookie", PERSISTENCE_OF_SERVER),
];

/// A word in the form of the tables.
fn normal(word: &str) -> String {
    word.to_ascii_lowercase().replace(['-', ' '], "_")
}

/// Help for a key that is unknown in its section, if the right key is elsewhere.
pub(crate) fn elsewhere(section: &str, key: &str) -> Option<String> {
    let word = normal(key);
    let equivalent = EQUIVALENTS.iter().find(|(of, foreign, _)| *of == section && *foreign == word);
    if let Some((_, _, help)) = equivalent {
        return Some((*help).to_owned());
    }
    let place = PLACES.iter().find(|(known, _)| *known == key);
    place.map(|(_, place)| format!("it belongs to {place}"))
}

/// The probable meaning of a word, among the words that are valid at its place.
pub(crate) fn meant<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
) -> Option<&'a str> {
    let mut known = known.into_iter();
    let normal = normal(word);
    let meanings = MEANINGS.iter().filter(|(foreign, _)| *foreign == normal);
    let by_meaning =
        meanings.filter_map(|(_, ours)| known.clone().find(|known| known == ours)).next();
    by_meaning.or_else(|| nearest(word, known.by_ref()))
}

/// The most similar candidate, if any is similar enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // For longer words the cost of the distance table exceeds the value of a suggestion.
    const WORD_CHARS_MAX: usize = 64;
    const CANDIDATES_MAX: usize = 2_000;
    let word = word.to_lowercase().replace('-', "_");
    let length = word.chars().count();
    if length > WORD_CHARS_MAX {
        return None;
    }
    let distance_max = (length / 3).max(1);
    candidates
        .into_iter()
        .take(CANDIDATES_MAX)
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= WORD_CHARS_MAX)
        .map(|candidate| {
            let comparable = candidate.to_lowercase().replace('-', "_");
            (strsim::damerau_levenshtein(&word, &comparable), candidate)
        })
        .filter(|(distance, candidate)| {
            // In a word of one or two letters, one different letter is no similarity.
            *distance <= distance_max && *distance < candidate.chars().count().min(length.max(1))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

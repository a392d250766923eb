//! Findings about the admin listeners and their users.

use std::path::Path;

use super::*;

const HASH: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

const SECURE: &str =
    "listen on loopback or a unix socket, or add `tls` and `users` (see `weir token new`)";

/// A sound file in the folder of examples, with these lines under `admin`.
fn load(admin: &str) -> Vec<String> {
    let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tls");
    let text =
        format!("{}admin:\n{admin}", sound("", "")).replace("TLS/", &format!("{}/", tls.display()));
    let loaded = parse("weir.yaml", &text);
    let is_of_certificate = |it: &&Diagnostic| it.message.contains("shop-ec.crt: the certificate");
    loaded.diagnostics.iter().filter(|it| !is_of_certificate(it)).map(show).collect()
}

#[test]
fn an_address_that_others_reach_needs_tls_and_users() {
    let user = format!("  users: {{ ann: {{ role: read, token_hash: \"{HASH}\" }} }}\n");
    let tls = "  tls: { certificates: [ { cert: TLS/shop-ec.crt, key: TLS/shop-ec.key } ] }\n";
    let check = |admin: &str, expected: &[&str]| assert_eq!(load(admin), expected, "{admin}");
    let lacks = |what: &str, place: &str, address: &str| {
        format!(
            "error {place} others can reach the admin listener at {address}: it needs {what} -> {SECURE}"
        )
    };
    for address in ["10.0.0.5:8443", "0.0.0.0:8443", "[::]:8443", "[2001:db8::1]:8443"] {
        let listen = format!("  listen: \"{address}\"\n");
        check(&listen, &[&lacks("`tls` and `users`", "9:11", address)]);
        check(&format!("{listen}{user}"), &[&lacks("`tls`", "9:11", address)]);
        check(&format!("{listen}{tls}"), &[&lacks("`users`", "9:11", address)]);
        check(&format!("{listen}{tls}{user}"), &[]);
    }
    check(
        &format!("  listen: [ 127.0.0.1:1, 10.0.0.5:2 ]\n{tls}"),
        &[&lacks("`users`", "9:26", "10.0.0.5:2")],
    );
    let useless = "warning 10:8 `tls` has no effect: unix sockets and loopback addresses speak plain \
                   HTTP -> remove it, or listen on another address as well";
    check(
        &format!("  listen: [ 127.0.0.1:1, \"[::1]:1\", \"unix:/run/a\" ]\n{tls}{user}"),
        &[useless],
    );
    check(&format!("  listen: 127.0.0.1:1\n{user}"), &[]);
    let fetch = "  tls: { certificates: [ { cert: TLS/shop-ec.crt, key: TLS/shop-ec.key, ocsp: fetch } ] }\n";
    let found = load(&format!("  listen: 10.0.0.5:8443\n{fetch}{user}"));
    assert!(
        found[0].contains("the admin listener fetches no OCSP responses -> name a file"),
        "{found:?}"
    );
}

#[test]
fn users_have_credentials_of_their_own() {
    let users = |users: &str| {
        format!("{}admin: {{ listen: 127.0.0.1:99, users: {users} }}\n", sound("", ""))
    };
    check(&users(&format!("{{ ann: {{ role: admin, token_hash: [ \"{HASH}\" ] }} }}")), &[]);
    check(&users("{}"), &["error 8:39 `users` is empty -> add a user, or remove it"]);
    check(
        &users("{ ann: { role: read } }"),
        &[
            "error 8:46 `admin.users.ann` lacks `token_hash` -> add `token_hash:` with `sha256:` and 64 \
             hexadecimal digits, or a list of them",
        ],
    );
    check(
        &users(&format!(
            "{{ ann: {{ role: read, token_hash: \"{HASH}\" }}, bob: {{ role: read, token_hash: \"{HASH}\" }} }}"
        )),
        &["error 8:180 this is also a token of the user `ann` -> make a token for each user"],
    );
    check(
        &users("{ ann: { role: read, certificate: ann.example } }"),
        &["error 8:73 `certificate` has no effect: clients are not asked for certificates -> add \
           `client_certificates: { ca: FILE }` to `admin.tls`"],
    );
    let wrong = findings(&users("{ ann: { role: root, token_hash: \"sha256:12\" } }"));
    assert!(wrong[0].contains("must be `read`, `operate` or `admin`"), "{wrong:?}");
    assert!(wrong[1].contains("must be `sha256:` and 64 hexadecimal digits"), "{wrong:?}");
    assert!(wrong[1].ends_with("`weir token new` prints a token and its hash"), "{wrong:?}");
    assert!(!wrong[1].contains("sha256:12"), "a hash is not quoted: {wrong:?}");
}

#[test]
fn names_in_certificates_belong_to_one_user() {
    let tls = "  tls:\n    certificates: [ { cert: TLS/shop-ec.crt, key: TLS/shop-ec.key } ]\n    \
               client_certificates: { ca: TLS/root.crt }\n";
    let listen = "  listen: 10.0.0.5:8443\n";
    let users = "  users:\n    ann: { role: read, certificate: [ a.example, b.example ] }\n    \
                 bob: { role: read, certificate: b.example }\n";
    assert_eq!(
        load(&format!("{listen}{tls}{users}")),
        ["error 15:37 this is also a certificate of the user `ann` -> remove one of them"]
    );
}

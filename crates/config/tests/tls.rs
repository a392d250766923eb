//! Findings about the TLS settings of virtual servers: files, pairs, times, conflicting settings.

use weir_config::{LoadResult, parse};

/// A configuration beside the examples, whose certificates it uses.
fn load(tls: &str, rest: &str) -> LoadResult {
    let name = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/test.yaml");
    let text = format!(
        "pools: {{ p: {{ members: [ 127.0.0.1:9001 ] }} }}\n\
         {rest}\n\
         virtual_servers:\n  a:\n    listen: 127.0.0.1:80\n    pool: p\n    {tls}\n"
    );
    parse(name, &text)
}

/// Each finding as `LINE:COLUMN MESSAGE -> SUGGESTION`, paths by their last part.
fn findings(loaded: &LoadResult) -> Vec<String> {
    let show = |it: &weir_config::Diagnostic| {
        let place = it.position.map_or_else(String::new, |at| format!("{}:{}", at.line, at.column));
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/");
        let message = it.message.replace(folder, "");
        format!("{place} {message} -> {}", it.suggestion.as_deref().unwrap_or("-"))
    };
    loaded.diagnostics.iter().map(show).collect()
}

#[track_caller]
fn check(tls: &str, expected: &[&str]) {
    assert_eq!(findings(&load(tls, "")), expected, "{tls}");
}

/// `tls` with a valid certificate and more.
fn with(more: &str) -> String {
    format!(
        "tls: {{ certificates: [ {{ cert: tls/shop-ec.crt, key: tls/shop-ec.key }} ], {more} }}"
    )
}

#[test]
fn a_sound_one() {
    check(&with(""), &[]);
    check(&with("min_version: 1.3"), &[]);
    check(&with("ciphers: [ tls_aes_128_gcm_sha256 ], curves: [ x25519, prime256v1 ]"), &[]);
    check(&with("client_certificates: { mode: request, ca: tls/authorities.crt }"), &[]);
}

#[test]
fn files() {
    let pair = |cert: &str, key: &str| {
        format!("tls: {{ certificates: [ {{ cert: {cert}, key: {key} }} ] }}")
    };
    let here = "a relative path starts at the configuration's directory";
    check(
        &pair("tls/none.crt", "tls/shop-ec.key"),
        &[&format!("7:36 cannot open tls/none.crt: No such file or directory -> {here}")],
    );
    check(
        &pair("tls/shop-ec.crt", "tls/shop-rsa.key"),
        &[
            "7:58 tls/shop-ec.crt and tls/shop-rsa.key: the private key is not the certificate's -> -",
        ],
    );
    check(
        &pair("tls/shop-ec.key", "tls/shop-ec.key"),
        &["7:36 tls/shop-ec.key: no certificate in it -> -"],
    );
    check(
        &pair("tls/shop-ec.crt", "tls/shop-ec.crt"),
        &["7:58 tls/shop-ec.crt: no private key in it -> -"],
    );
    check(
        &pair("tls/generate", "tls/generate"),
        &[
            "7:36 tls/generate: no certificate in it -> -",
            "7:55 tls/generate: no private key in it -> -",
        ],
    );
    let crl = |file: &str, why: &str| {
        let settings = format!("client_certificates: {{ ca: tls/authorities.crt, crl: {file} }}");
        check(&with(&settings), &[&format!("7:132 {file}: {why} -> -")]);
    };
    crl(
        "tls/root.crt",
        "line 1: the block is a certificate, where a revocation list (X509 CRL) should be",
    );
    crl("tls/shop-ec.ocsp", "it is no list of revoked certificates (CRL)");
    crl("tls/generate", "no list of revoked certificates, neither in PEM (X509 CRL) nor in DER");
    let ca = |file: &str, why: &str| {
        let settings = format!("client_certificates: {{ ca: {file} }}");
        check(&with(&settings), &[&format!("7:106 {file}: {why} -> -")]);
    };
    ca(
        "tls/revoked.crl",
        "line 1: the block is a revocation list (X509 CRL), where a certificate should be",
    );
    check(
        &with("ticket_key_file: tls/shop-ec.crt"),
        &[
            "7:96 tls/shop-ec.crt: line 1 is no key: 32 bytes as base64, or as 64 hexadecimal digits -> -",
        ],
    );
}

/// The certificates of the examples: `.crt` with `.key`, one of them with `.ocsp`; without those of authorities, which
/// have no key.
#[test]
fn a_folder_of_certificates() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let tls = format!("tls: {{ certificate_folder: {} }}", path.display());
    let problem = |expected: &str| {
        let found = findings(&load(&tls, ""));
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    };
    problem(
        "has no certificate in it -> put `NAME.crt` and `NAME.key` there, or `NAME.pem` with both",
    );
    let examples = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tls"));
    let copy = |from: &str, to: &str| {
        std::fs::copy(examples.join(from), path.join(to)).expect("copied");
    };
    copy("shop-rsa.crt", "b.crt");
    problem("b.key: No such file or directory");
    copy("shop-rsa.key", "b.key");
    copy("shop-ec.crt", "a.crt");
    copy("shop-ec.key", "a.key");
    copy("shop-ec.ocsp", "a.ocsp");
    copy("tickets.keys", "notes.txt");
    let both = ["partner.crt", "partner.key"].map(|name| std::fs::read(examples.join(name)));
    let both = both.map(|bytes| bytes.expect("a file")).concat();
    std::fs::write(path.join("c.pem"), both).expect("written");
    let loaded = load(&tls, "");
    assert_eq!(findings(&loaded), [""; 0]);
    let snapshot = loaded.config.expect("sound").snapshot(&weir_config::Resolutions::new());
    let identities: Vec<_> = snapshot.shown().collect();
    let subjects: Vec<&str> = identities.iter().map(|it| &*it.subject).collect();
    assert_eq!(subjects, ["CN=shop.example", "CN=shop.example", "CN=partner.example"]);
    let stapled: Vec<bool> = identities.iter().map(|it| it.staple.is_some()).collect();
    assert_eq!(stapled, [true, false, false]);
    std::fs::write(path.join("d.pem"), "nothing").expect("written");
    assert_eq!(findings(&load(&tls, "")).len(), 2);
}

#[test]
fn what_does_not_go_together() {
    check(
        "tls: {}",
        &[
            "7:10 `tls` has no certificate to show -> add `certificates: [ { cert: FILE, key: FILE } ]`",
        ],
    );
    check(
        &with("min_version: 1.3, max_version: 1.2"),
        &["7:92 `min_version` is above `max_version`: no version is left -> change one of them"],
    );
    check(
        &with("min_version: 1.3, ciphers: [ ECDHE-RSA-AES256-GCM-SHA384 ]"),
        &[
            "7:106 `ciphers` has no suite for the enabled TLS versions -> add one, or change the versions",
        ],
    );
    check(
        &with("resumption: stateful, ticket_key_file: tls/tickets.keys"),
        &[
            "7:118 `ticket_key_file` is of `resumption: tickets` -> set `resumption: tickets`, or remove it",
        ],
    );
    check(
        &with("cache_size: 2MiB"),
        &[
            "7:91 `cache_size` is of `resumption: stateful` -> set `resumption: stateful`, or remove it",
        ],
    );
    check(&with("resumption: stateful, early_data: true"), &[]);
    for more in ["early_data: true", "resumption: off, early_data: true"] {
        let column = 79 + more.len() - 4;
        check(
            &with(more),
            &[&format!(
                "7:{column} `early_data` without `resumption: stateful`: early data of a client could be \
                 recorded, and sent again by anybody -> set `resumption: stateful`, where each session serves \
                 once, or remove it"
            )],
        );
    }
    check(
        &with("resumption: stateful, max_version: 1.2, early_data: true"),
        &["7:131 `early_data` is of TLS 1.3, which `max_version` excludes -> remove one of them"],
    );
    check(
        &with("by_name: [ { names: [ b.example ], profile: q } ]"),
        &["7:123 TLS profile `q` is not defined -> no TLS profile is defined at all"],
    );
    check(
        "hsts: {}",
        &[
            "7:11 `hsts` without `tls`: browsers accept it only over TLS -> set it for the virtual server with `tls`",
        ],
    );
}

#[test]
fn words() {
    check(
        &with("min_version: \"1.1\""),
        &[
            "7:92 `virtual_servers.a.tls.min_version` must be \"1.2\" or \"1.3\", found the text \"1.1\" -> \
         older versions are broken (RFC 8996) and not spoken",
        ],
    );
    check(
        &with("ciphers: [ ECDHE-RSA-AES256-GCM-SHA348 ]"),
        &[
            "7:90 `virtual_servers.a.tls.ciphers[0]` must be a cipher suite: AES-GCM or ChaCha20-Poly1305 with \
         ephemeral keys, found the text \"ECDHE-RSA-AES256-GCM-SHA348\" -> did you mean \
         `ECDHE-RSA-AES256-GCM-SHA384`?",
        ],
    );
    check(
        &with("by_name: [ { names: [ \"a b\" ], profile: q } ]"),
        &[
            "7:101 `virtual_servers.a.tls.by_name[0].names[0]`: `a b` is not a valid server name -> -",
            "7:119 TLS profile `q` is not defined -> no TLS profile is defined at all",
        ],
    );
}

/// A client's name may match a pattern; members are asked for one name.
#[test]
fn names_of_members() {
    let check = |name: &str, expected: &[&str]| {
        let text = format!(
            "virtual_servers: {{ a: {{ listen: 127.0.0.1:80, pool: q }} }}\n\
             pools: {{ q: {{ members: [ a.example:1 ], tls: {{ verify: false, server_name: \"{name}\" }} }} }}\n"
        );
        assert_eq!(findings(&parse("weir.yaml", &text)), expected, "{name}");
    };
    for sound in ["a.example", "A.example.", "a-b_c", "10.0.0.1"] {
        check(sound, &[]);
    }
    let not_a_name = |name: &str, help: &str| {
        format!("2:76 `pools.q.tls.server_name`: `{name}` is not a valid server name -> {help}")
    };
    let form = "write letters, digits and hyphens, none of these first or last, between dots";
    for bad in ["-", "a..b", "-a.example", "a-.example", "a b"] {
        check(bad, &[&not_a_name(bad, form)]);
    }
    let one = "write one name, such as a.x: only certificates can have `*`";
    check("*.x", &[&not_a_name("*.x", one)]);
}

#[test]
fn a_redirect_beside_tls_would_go_round() {
    let both = format!("https_redirect: true\n    {}", with(""));
    check(
        &both,
        &[
            "7:21 `https_redirect` with `tls`: it would redirect to itself -> set it for the virtual server that \
         listens without TLS",
        ],
    );
}

#[test]
fn profiles_are_used_by_name() {
    let profile = "profiles: { tls: { strong: { certificates: [ { cert: tls/shop-ec.crt, key: tls/shop-ec.key } ] } } }";
    let loaded = load("tls: strong", profile);
    assert_eq!(findings(&loaded), [""; 0]);
    let unused = load("http: {}", profile);
    assert_eq!(
        findings(&unused),
        ["2:20 the TLS profile `strong` is never used -> use it in a virtual server, or remove it",]
    );
}

/// Findings of a file with the section `acme` and these virtual servers, one per line.
#[track_caller]
fn check_acme(section: &str, servers: &[&str], expected: &[&str]) {
    let name = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/test.yaml");
    let servers: String = servers.iter().map(|server| format!("  {server}\n")).collect();
    let pools = "pools: { p: { members: [ 127.0.0.1:9001 ] } }";
    let text = format!("{section}\n{pools}\nvirtual_servers:\n{servers}");
    assert_eq!(findings(&parse(name, &text)), expected, "{text}");
}

const ACME: &str = "acme: { agree_to_terms: true }";
const PLAIN: &str = "plain: { listen: \"127.0.0.1:80\", pool: p }";

/// A virtual server with these certificates.
fn secure(certificates: &str) -> String {
    format!(
        "s: {{ listen: \"127.0.0.1:443\", pool: p, tls: {{ certificates: [ {certificates} ] }} }}"
    )
}

#[test]
fn certificates_by_acme() {
    let with = |certificates: &str, expected: &[&str]| {
        check_acme(ACME, &[PLAIN, &secure(certificates)], expected);
    };
    with("{ acme: [ shop.example, www.shop.example ] }", &[]);
    with("{ acme: [ Shop.Example. ], ocsp: fetch }", &[]);
    with("{ acme: [ shop.example ], cert: tls/shop-ec.crt, key: tls/shop-ec.key }", &[]);
    with("{ acme: [ a.example ] }, { cert: tls/shop-ec.crt, key: tls/shop-ec.key }", &[]);
    with(
        "{ acme: [] }",
        &[
            "5:73 `virtual_servers.s.tls.certificates[0].acme` is empty; it needs at least one item -> -",
        ],
    );
    with(
        "{ acme: [ a.example, \"*.a.example\" ] }",
        &[
            "5:86 `*.a.example`: an authority issues wildcards by the challenge dns-01 alone, which weir does not offer \
           -> list the names, or use `cert` and `key` with files of another ACME client",
        ],
    );
    with(
        "{ acme: [ a.example, a.example ] }",
        &["5:86 `a.example` is here twice -> remove one of them"],
    );
    with(
        "{ acme: [ a.example ], cert: tls/shop-ec.crt }",
        &[
            "5:73 beside `acme`, `cert` and `key` are needed both, or neither -> add the other, or remove it",
        ],
    );
    with(
        "{ acme: [ a.example ], ocsp: tls/shop-ec.ocsp }",
        &[
            "5:94 a file's OCSP response cannot be for certificates to come -> write `ocsp: fetch`, or remove it",
        ],
    );
    let many: Vec<String> = (0..101).map(|number| format!("a{number}.example")).collect();
    with(
        &format!("{{ acme: [ {} ] }}", many.join(", ")),
        &[
            "5:73 a certificate has at most 100 names, and here are 101 -> divide them among several certificates",
        ],
    );
}

#[test]
fn an_authority_for_acme() {
    let secure = secure("{ acme: [ shop.example ] }");
    let with = |section: &str, expected: &[&str]| {
        check_acme(section, &[PLAIN, &secure], expected);
    };
    with(
        "acme: { agree_to_terms: true, external_account: { id: a, key_file: tls/account.key } }",
        &[],
    );
    with(
        "acme: { agree_to_terms: true, ca: tls/root.crt, challenge: tls-alpn-01, key: rsa-4096 }",
        &[],
    );
    with(
        "acme: { email: a@b }",
        &["1:7 `acme` lacks `agree_to_terms` -> add `agree_to_terms:` with `true` or `false`"],
    );
    with(
        "acme: { agree_to_terms: false }",
        &[
            "1:25 without your agreement to its terms of service, an authority issues no certificates -> read them (their \
           URL is in the authority's directory), and write `agree_to_terms: true`",
        ],
    );
    with(
        "acme: { agree_to_terms: true, directory: \"http://ca.example/\" }",
        &[
            "1:42 `acme.directory`: without TLS anybody could pose as the authority -> write `https://…`, and `ca: FILE` \
           for an authority of your own",
        ],
    );
    with(
        "acme: { agree_to_terms: true, external_account: { id: a, key_file: tls/shop-ec.key } }",
        &[
            "1:68 tls/shop-ec.key is no key in base64url -> put the HMAC key there as the authority shows it",
        ],
    );
    with(
        "acme: { agree_to_terms: true, challenge: dns-01 }",
        &[
            "1:42 `dns-01` is not supported yet -> remove `dns-01`: this version of weir cannot do it",
        ],
    );
    check_acme(
        "",
        &[PLAIN, &secure],
        &[
            "5:73 `acme` without the section of this name: weir knows no authority -> add `acme: { email: YOU@EXAMPLE, \
           agree_to_terms: true }` at the top of the file",
        ],
    );
}

#[test]
fn an_authority_that_finds_nobody() {
    let secure = secure("{ acme: [ shop.example ] }");
    let elsewhere = secure.replace(":443", ":8443");
    let http = "1:7 `challenge: http-01`: the authority connects to port 80, and no virtual server without `tls` listens \
                there -> listen on port 80, or forward it to such a virtual server";
    let tls = "1:7 `challenge: tls-alpn-01`: the authority connects to port 443, and no virtual server with a certificate \
               by `acme` listens there -> listen on port 443, or forward it to such a virtual server";
    check_acme(ACME, &[&secure], &[http]);
    check_acme(ACME, &[&PLAIN.replace(":80", ":8080"), &secure], &[http]);
    let alpn = "acme: { agree_to_terms: true, challenge: tls-alpn-01 }";
    check_acme(alpn, &[&secure], &[]);
    check_acme(alpn, &[PLAIN, &elsewhere], &[tls]);
    let unused = "1:7 no virtual server has a certificate by `acme` -> write `certificates: [ { acme: [ shop.example ] } ]` \
                  in its `tls`, or remove the section";
    check_acme(ACME, &[PLAIN], &[unused]);
}

/// Files of several blocks: each block is read, or the file is refused.
#[test]
fn files_are_read_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let examples = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tls"));
    let example = |name: &str| std::fs::read_to_string(examples.join(name)).expect("a file");
    let (list, root, key) = (example("revoked.crl"), example("root.crt"), example("shop-ec.key"));
    let path = folder.path().join("file");
    let shown = path.display().to_string();
    let bom = '\u{feff}';
    let told = |settings: &str, text: &str| {
        std::fs::write(&path, text).expect("written");
        findings(&load(settings, "")).join(" | ")
    };
    let crl = |text: &str| {
        let ca = "ca: tls/authorities.crt";
        told(&with(&format!("client_certificates: {{ {ca}, crl: {shown} }}")), text)
    };
    let ca = |text: &str| told(&with(&format!("client_certificates: {{ ca: {shown} }}")), text);
    let pair = |text: &str| {
        let pair = format!("{{ cert: {shown}, key: {shown} }}");
        told(&format!("tls: {{ certificates: [ {pair} ] }}"), text)
    };
    let shop = example("shop-ec.crt");
    assert_eq!(crl(&list), "");
    assert_eq!(crl(&format!("# all of them\n\n  {list}")), "");
    assert_eq!(ca(&format!("{root}\nanother one:\n{root}")), "");
    let leaf = ca(&format!("{root}{shop}"));
    let line = root.lines().count() + 1;
    let expected = format!("line {line}: the certificate of \"CN=shop.example\" is no authority");
    assert!(leaf.contains(&expected), "{leaf}");
    // The markers of a list of short lines are lost.
    let base64: String = list.lines().filter(|line| !line.contains('-')).collect();
    let short: Vec<&str> =
        base64.as_bytes().chunks(16).map(|it| std::str::from_utf8(it).expect("text")).collect();
    let lost = crl(&format!("{list}{}\n", short.join("\n")));
    let expected = format!("line {}: this looks like base64", list.lines().count() + 1);
    assert!(lost.contains(&expected), "{lost}");
    assert_eq!(pair(&format!("{shop}{key}")), "");
    assert_eq!(pair(&format!("{key}{shop}")), "");
    let lines = list.lines().count();
    let glued = list.trim_end();
    for (found, expected) in [
        (crl(&format!("{bom}{list}")), "line 1: there is a byte order mark"),
        (crl(&format!("{list}{bom}{list}")), &*format!("line {}: there is a byte", lines + 1)),
        (crl(&format!("{glued}{list}")), &format!("line {lines}: a block begins on the line")),
        (crl(&format!("{list}{root}")), &format!("line {}: the block is a cert", lines + 1)),
        (crl(&format!("{list}{}", &glued[..glued.len() - 9])), "looks like the begin or the end"),
        (crl(&format!("{list}{list}")), "only the newest is used"),
        (ca(&format!("{bom}{root}")), "line 1: there is a byte order mark"),
        (ca(&root.replace("CERTIFICATE", "TRUSTED CERTIFICATE")), "line 1: the block is a TRUSTED"),
        (ca(&root.replace("MII", "MIA")), "line 1: the certificate cannot be read"),
        (ca(&format!("{root}{key}")), "the block is a private key, where a certificate should be"),
        (pair(&format!("{bom}{shop}{key}")), "line 1: there is a byte order mark"),
        (pair(&format!("{shop}{key}{key}")), "this is a second private key"),
        (pair(&format!("{shop}{list}{key}")), "the block is a revocation list"),
    ] {
        assert!(found.contains(expected) && !found.contains(" | "), "{expected}: {found}");
    }
    assert_eq!(ca(&root.replace("CERTIFICATE", "X509 CERTIFICATE")), "");
}

#[test]
fn an_ocsp_response_without_its_issuer_is_read_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let examples = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tls"));
    let chain = std::fs::read_to_string(examples.join("shop-ec.crt")).expect("a file");
    let end = chain.find("-----END").expect("an end");
    let leaf = &chain[..chain[end..].find('\n').expect("a line") + end + 1];
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("leaf.crt"), leaf).expect("written");
    let told = |ocsp: &str| {
        let pair = format!("{{ cert: {}, key: tls/shop-ec.key, ocsp: {ocsp} }}", path("leaf.crt"));
        findings(&load(&format!("tls: {{ certificates: [ {pair} ] }}"), "")).join("; ")
    };
    assert_eq!(told("tls/shop-ec.ocsp"), "");
    assert!(told("tls/root.crt").contains("it is no OCSP response"));
    std::fs::write(path("other.crt"), "x").expect("written");
    assert!(told(&path("other.crt")).contains("it is no OCSP response"));
}

#[test]
fn files_of_a_folder_that_are_not_read_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let examples = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tls"));
    let copy = |from: &str, to: &str| {
        std::fs::copy(examples.join(from), folder.path().join(to)).expect("copied");
    };
    copy("shop-ec.crt", "a.crt");
    copy("shop-ec.key", "a.key");
    copy("tickets.keys", "notes.txt");
    let told = || {
        let tls = format!("tls: {{ certificate_folder: {} }}", folder.path().display());
        findings(&load(&tls, "")).join("; ")
    };
    assert_eq!(told(), "");
    copy("shop-rsa.crt", "b.CRT");
    copy("shop-rsa.crt", "c.cer");
    copy("shop-rsa.key", "d.key");
    copy("shop-rsa.key", "e.pfx");
    let found = told();
    assert!(found.contains("not read: b.CRT, c.cer, d.key and 1 more"), "{found}");
    // A link that leads nowhere is told once.
    std::os::unix::fs::symlink("/nowhere/f", folder.path().join("f.pem")).expect("a link");
    let found = told();
    assert_eq!(found.matches("f.pem").count(), 1, "{found}");
}

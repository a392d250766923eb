//! Rules and members interpret the path of a request in the same way: real servers resolve the path that the rules saw.

mod members;
#[path = "../../../crates/http/tests/invariants/resolvers.rs"]
mod resolvers;
mod seen;

use weir_testing::Random;
use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{http2, require};

use members::{Kind, Resolved, Resolver};
use resolvers::{SPELLINGS, Server, assemble, merged, resolve, resolve_whole, spell};

/// Requests for `/admin` that would bypass a rule for that prefix, with members that decode `%2F` and merge slashes; and
/// similar requests.
const BYPASSES: [&str; 14] = [
    "//admin/",
    "/public/..%2fadmin/",
    "/%2fadmin/x",
    "/public/%2e%2e%2fadmin/x",
    "/public%2f../admin/x",
    "///admin",
    "/public//../admin/",
    "/.//admin/",
    "/%2Fadmin",
    "/%2e%2F/admin",
    "/public/%2e%2e//admin",
    "/public%2F%2e%2e%2Fadmin",
    "//public/..//admin",
    "/%2f%2fadmin",
];

#[test]
fn no_spelling_of_a_path_passes_the_rule_that_refuses_it() {
    require!("nginx");
    let member = Resolver::start(Kind::Nginx);
    let rule = "[ { when: 'request.path.startsWith(\"/admin\")', then: [ { respond: { status: 403 } } ] } ]";
    let setup = Setup::new(&[member.address()])
        .virtual_server("policies: [ test ]")
        .top(&format!("policies: {{ test: {{ rules: {rule} }} }}"));
    for path_setting in [
        "{}",
        "{ encoded_slashes: decode }",
        "{ encoded_slashes: keep, repeated_slashes: keep }",
        "{ backslashes: keep, parameters: remove }",
        "keep",
    ] {
        let setup = setup.clone().http(&format!("http2: true, path: {path_setting}"));
        let proxy = Proxy::start(&setup);
        let mut passed = Vec::new();
        for path in BYPASSES {
            let by_http1 = proxy.client().get(path);
            let by_http2 = http2::Peer::connect(proxy.address()).get(path);
            let by_http2 = (by_http2.status(), by_http2.body);
            for (status, body) in [(by_http1.status, by_http1.body), by_http2] {
                match status {
                    400 | 403 => {}
                    200 => passed.push((path, Resolved::read(&body))),
                    other => panic!("{path}: {other}"),
                }
            }
        }
        passed.retain(|(_, resolved)| resolved.path.starts_with(b"/admin"));
        let passed: Vec<_> = passed.iter().map(|(path, _)| path).collect();
        assert!(passed.is_empty(), "{path_setting}: {passed:?}");
    }
}

/// The settings of `http.path`. Every path is requested under each setting.
const SETTINGS: [&str; 7] = [
    "{}",
    "{ encoded_slashes: decode }",
    "{ encoded_slashes: keep }",
    "{ backslashes: slash, parameters: remove, encoded_slashes: decode }",
    "{ repeated_slashes: keep, encoded_slashes: keep, backslashes: keep, nul: keep }",
    "{ parameters: refuse, repeated_slashes: keep }",
    "keep",
];

/// Number of random spellings per setting, in addition to those of the table.
const GENERATED: usize = 120;

/// A proxy with one pool for each member. The Host header selects the member by its name.
fn in_front_of(members: &[(Kind, Resolver)], path_setting: &str) -> Proxy {
    let mut setup = Setup::new(&[members[0].1.address()]);
    let mut rules = String::new();
    for (kind, member) in members {
        let name = kind.program();
        setup = setup.also_pool(&format!("{name}: {{ members: [ {} ] }}", member.address()));
        rules.push_str(&format!(
            "{{ when: 'request.host == \"{name}\"', then: [ {{ pool: {name} }}, \
             {{ set_response_header: {{ X-Path: '${{request.path}}', X-Target: '${{request.target}}' }} }} ] }}, "
        ));
    }
    Proxy::start(
        &setup
            .http(&format!("path: {path_setting}"))
            .virtual_server("policies: [ test ]")
            .top(&format!("policies: {{ test: {{ rules: [ {rules} ] }} }}")),
    )
}

/// Requests a path from a member. Returns the path that rules saw, and the answer. `None`: weir refused the path.
fn ask(
    client: &mut Option<Client>,
    proxy: &Proxy,
    kind: Kind,
    path: &str,
) -> Option<(String, Answer)> {
    let connection = client.get_or_insert_with(|| proxy.client());
    connection.send(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", kind.program()));
    let response = connection.response();
    if response.head.has_token("connection", "close") {
        *client = None;
    }
    let Some(decided) = response.head.field("x-path") else {
        response.assert_status(400);
        return None;
    };
    let answer = match response.status {
        200 => Answer::Resolved(Resolved::read(&response.body)),
        // nginx and Apache reject paths above the root, `%00`, and some encoded slashes.
        400 | 404 => Answer::Refused(response.head.field("x-target").expect("set").to_owned()),
        other => panic!("{path}: {other}"),
    };
    Some((decided.to_owned(), answer))
}

enum Answer {
    Resolved(Resolved),
    /// The target that the member refused.
    Refused(String),
}

#[test]
fn what_rules_saw_is_what_nginx_apache_and_node_resolve() {
    require!("nginx", "apache2", "node");
    let members = Kind::ALL.map(|kind| (kind, Resolver::start(kind)));
    let mut random = Random::new(15);
    for setting in SETTINGS {
        let proxy = in_front_of(&members, setting);
        let mut client = None;
        let generated = (0..GENERATED).map(|_| {
            let choices: Vec<u8> = (0..=random.below(7)).map(|_| random.below(256) as u8).collect();
            assemble(&choices)
        });
        let (mut sent, mut refused) = (0, 0);
        for path in SPELLINGS.map(str::to_owned).into_iter().chain(generated) {
            // A space would end the target.
            if path.contains(' ') {
                continue;
            }
            for (kind, _) in &members {
                let Some((decided, answer)) = ask(&mut client, &proxy, *kind, &path) else {
                    refused += 1;
                    continue;
                };
                sent += 1;
                let told = format!("{kind:?}, {setting}: {path}");
                check(*kind, setting, &decided, &answer, &told);
            }
        }
        println!("{setting}: {sent} sent, {refused} refused");
        assert!(sent > 3 * 30 && refused > 0, "{setting}: {sent} sent, {refused} refused");
    }
}

/// Checks a member's answer against the model of its kind. Also checks the path that rules saw against the models of all
/// kinds.
fn check(kind: Kind, setting: &str, decided: &str, answer: &Answer, told: &str) {
    let asked = match answer {
        Answer::Resolved(resolved) => {
            let modelled = resolve_whole(kind.server(), resolved.received.as_bytes());
            let shown = resolved.path.escape_ascii();
            assert_eq!(modelled.as_ref(), Some(&resolved.path), "{shown} of {told}");
            &resolved.received
        }
        Answer::Refused(target) => {
            assert_eq!(resolve_whole(kind.server(), target.as_bytes()), None, "{told}");
            target
        }
    };
    for server in resolvers::SERVERS {
        let Some(mut resolved) = resolve(server, asked.as_bytes()) else { continue };
        if server == Server::Url && setting != "{}" {
            // Node's `URL` keeps repeated slashes.
            resolved = merged(&resolved);
        }
        assert_eq!(decided, spell(&resolved), "{server:?} resolves another path: {told}");
    }
}

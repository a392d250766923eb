//! Requests to web applications: shops, blogs, software forges, log-ins.

use weir_testing::Random;

use super::texts::{ADDRESSES, COMMENTS, ISSUES, NAMES, SEARCHES, TITLES};
use crate::send::Sent;

pub fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len())]
}

pub fn hex(random: &mut Random, digits: usize) -> String {
    (0..digits).map(|_| char::from(b"0123456789abcdef"[random.below(16)])).collect()
}

/// A token in the URL alphabet of Base64.
pub fn token(random: &mut Random, length: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..length).map(|_| char::from(ALPHABET[random.below(64)])).collect()
}

fn date(random: &mut Random) -> String {
    format!("20{:02}-{:02}-{:02}", 18 + random.below(9), 1 + random.below(12), 1 + random.below(28))
}

/// A password. It contains all kinds of characters, as policies require.
fn password(random: &mut Random) -> String {
    const WORDS: [&str; 12] = [
        "Sommer2024!",
        "correct horse battery staple",
        "P@ssw0rd",
        "Tr0ub4dor&3",
        "it's-me",
        "ÄÖü#99",
        "qwertz+1",
        "hunter2",
        "Gänse$Füße",
        "4ever&ever",
        "no;semi:colons",
        "x_Y-z.0",
    ];
    format!("{}{}", pick(random, &WORDS), random.below(1000))
}

fn email(random: &mut Random) -> String {
    const LOCAL: [&str; 8] = [
        "anna.mueller",
        "sean.o'brien",
        "info",
        "j.doe+news",
        "max_99",
        "contact",
        "a.b-c",
        "sales",
    ];
    format!("{}@mail{}.example.com", pick(random, &LOCAL), random.below(50))
}

pub fn search(random: &mut Random, index: usize) -> Sent {
    let text = SEARCHES[index % SEARCHES.len()];
    let page = random.below(20).to_string();
    match random.below(4) {
        0 => Sent::query("/search", &[("q", text.as_bytes())]),
        1 => Sent::query("/", &[("s", text.as_bytes()), ("post_type", b"product")]),
        2 => Sent::query(
            "/catalog",
            &[
                ("query", text.as_bytes()),
                ("sort", b"price:asc"),
                ("page", page.as_bytes()),
                ("filter[color][]", b"red"),
                ("price_min", b"10.00"),
                ("price_max", b"99.95"),
            ],
        ),
        _ => Sent::form("/search", &[("keyword", text.as_bytes()), ("lang", b"de-DE")]),
    }
}

pub fn log_in(random: &mut Random, _: usize) -> Sent {
    let (email, password, token) = (email(random), password(random), token(random, 43));
    match random.below(3) {
        0 => Sent::form(
            "/wp-login.php",
            &[
                ("log", email.as_bytes()),
                ("pwd", password.as_bytes()),
                ("wp-submit", b"Log In"),
                ("redirect_to", b"https://www.example.com/wp-admin/"),
                ("testcookie", b"1"),
            ],
        )
        .with("Cookie", "wordpress_test_cookie=WP%20Cookie%20check"),
        1 => Sent::form(
            "/user/login",
            &[
                ("_csrf", token.as_bytes()),
                ("user_name", email.as_bytes()),
                ("password", password.as_bytes()),
                ("remember", b"on"),
            ],
        ),
        _ => Sent::post(
            "/api/session",
            "application/json",
            serde_json::json!({ "email": email, "password": password, "rememberMe": true })
                .to_string(),
        ),
    }
}

pub fn order(random: &mut Random, index: usize) -> Sent {
    let (name, address) = (NAMES[index % NAMES.len()], ADDRESSES[index % ADDRESSES.len()]);
    let (email, price) = (email(random), format!("{}.{:02}", random.below(900), random.below(100)));
    let (first, last) = name.split_once(' ').unwrap_or((name, ""));
    let date = date(random);
    match random.below(3) {
        0 => Sent::form(
            "/checkout?step=address",
            &[
                ("billing_first_name", first.as_bytes()),
                ("billing_last_name", last.as_bytes()),
                ("billing_address_1", address.as_bytes()),
                ("billing_email", email.as_bytes()),
                ("billing_phone", b"+49 (30) 123 456-78"),
                ("order_comments", pick(random, &COMMENTS).as_bytes()),
                ("total", price.as_bytes()),
            ],
        ),
        1 => Sent::post(
            "/api/v2/orders",
            "application/json; charset=utf-8",
            serde_json::json!({
                "customer": { "name": name, "email": email, "address": { "lines": [address], "country": "DE" } },
                "items": [ { "sku": format!("SKU-{}", random.below(99_999)), "title": pick(random, &TITLES), "qty": 2,
                    "price": price } ],
                "deliver_on": date, "note": null,
            })
            .to_string(),
        ),
        _ => Sent::query(
            "/booking",
            &[
                ("name", name.as_bytes()),
                ("arrival", date.as_bytes()),
                ("time", b"14:30"),
                ("guests", b"2"),
                ("amount", price.as_bytes()),
            ],
        ),
    }
}

pub fn wordpress(random: &mut Random, index: usize) -> Sent {
    let comment = COMMENTS[index % COMMENTS.len()];
    let (id, nonce) = (random.below(9_999).to_string(), hex(random, 10));
    let cookie = format!(
        "wordpress_logged_in_{}=admin%7C1735689600%7C{}; wp-settings-1=libraryContent%3Dbrowse%26editor%3Dtinymce; \
         wp-settings-time-1=17{}",
        hex(random, 32),
        token(random, 43),
        random.below(99_999_999)
    );
    let sent = match random.below(6) {
        0 | 1 => Sent::form(
            "/wp-comments-post.php",
            &[
                ("comment", comment.as_bytes()),
                ("author", pick(random, &NAMES).as_bytes()),
                ("email", email(random).as_bytes()),
                ("url", b"https://blog.example.org/"),
                ("submit", b"Post Comment"),
                ("comment_post_ID", id.as_bytes()),
                ("comment_parent", b"0"),
            ],
        ),
        2 => Sent::form(
            "/wp-admin/admin-ajax.php",
            &[
                ("action", b"heartbeat"),
                ("_nonce", nonce.as_bytes()),
                ("interval", b"60"),
                ("screen_id", b"edit-post"),
                ("has_focus", b"false"),
                ("data[wp-refresh-post-lock][post_id]", id.as_bytes()),
            ],
        ),
        3 => Sent::get(format!(
            "/wp-admin/load-scripts.php?c=1&load%5Bchunk_0%5D=jquery-core,jquery-migrate,utils,wp-hooks&ver=6.5.{id}"
        )),
        4 => Sent::get(format!("/wp-admin/post.php?post={id}&action=edit&_wpnonce={nonce}")),
        _ => Sent::post(
            format!("/wp-json/wp/v2/posts/{id}?_locale=user"),
            "application/json",
            serde_json::json!({ "id": 7, "title": pick(random, &TITLES), "status": "draft", "categories": [1, 5],
                "excerpt": comment })
            .to_string(),
        ),
    };
    sent.with("Cookie", &cookie)
}

pub fn forge(random: &mut Random, index: usize) -> Sent {
    let text = ISSUES[index % ISSUES.len()];
    let title = pick(random, &TITLES);
    let csrf = token(random, 60);
    let number = 1 + random.below(4_000);
    let sent = match random.below(5) {
        0 | 1 => Sent::form(
            "/team/project/issues/new",
            &[
                ("_csrf", csrf.as_bytes()),
                ("title", title.as_bytes()),
                ("content", text.as_bytes()),
                ("label_ids", b"3,7"),
                ("ref", b"refs/heads/main"),
            ],
        ),
        2 => Sent::post(
            format!("/api/v1/repos/team/project/issues/{number}/comments"),
            "application/json",
            serde_json::json!({ "body": text }).to_string(),
        )
        .with("Authorization", &format!("token {}", hex(random, 40))),
        3 => Sent::post(
            "/graphql",
            "application/json",
            serde_json::json!({
                "query": "mutation AddComment($input: AddCommentInput!) { addComment(input: $input) { commentEdge { node { id body } } } }",
                "variables": { "input": { "subjectId": "MDU6SXNzdWUx", "body": text } },
            })
            .to_string(),
        ),
        _ => Sent::get(format!(
            "/team/project/compare/v1.{number}...main?diff=split&w=1&q=is%3Aopen+label%3Abug+author%3A%40me"
        )),
    };
    sent.with("Cookie", &format!("i_like_gitea={}; lang=en-US; _csrf={csrf}", hex(random, 16)))
}

//! Requests of programs: APIs, uploads, beacons, third-party log-ins and assets.

use weir_testing::Random;

use super::apps::{hex, pick, token};
use super::texts::{COMMENTS, NAMES, TITLES};
use crate::send::Sent;

const QUERIES: [&str; 8] = [
    "query Product($id: ID!) { product(id: $id) { id title price { amount currency } images(first: 3) { edges { node { url } } } } }",
    "{ viewer { login name repositories(last: 10) { nodes { name stargazerCount } } } }",
    "query { users(where: { age: { _gt: 30 } }, order_by: { name: asc }) { id name } }",
    "mutation { createReview(episode: JEDI, review: { stars: 5, commentary: \"Great!\" }) { stars } }",
    "subscription OnMessage($room: String!) { message(room: $room) { id text } }",
    "query Search($q: String!, $after: String) { search(query: $q, first: 20, after: $after) { pageInfo { endCursor hasNextPage } } }",
    "fragment F on User { id name } query Me { me { ...F } }",
    "query Introspect { __typename }",
];

pub fn graphql(random: &mut Random, index: usize) -> Sent {
    let query = QUERIES[index % QUERIES.len()];
    let variables = serde_json::json!({ "id": format!("gid://shop/Product/{}", random.below(99_999)), "q": pick(random, &TITLES) });
    if random.percent(20) {
        return Sent::query(
            "/graphql",
            &[("query", query.as_bytes()), ("variables", variables.to_string().as_bytes())],
        );
    }
    let body = serde_json::json!({ "operationName": null, "query": query, "variables": variables });
    Sent::post("/graphql", "application/json", body.to_string()).with(
        "Authorization",
        &format!("Bearer {}.{}.{}", token(random, 36), token(random, 120), token(random, 43)),
    )
}

pub fn api(random: &mut Random, index: usize) -> Sent {
    let id = random.below(1_000_000);
    match index % 6 {
        0 => Sent::get(format!(
            "/api/v3/users/{id}/events?fields=id,name,created_at&sort=-created_at&since=2024-01-01T00:00:00%2B01:00&per_page=100"
        )),
        1 => Sent::post(
            "/api/events",
            "application/json",
            serde_json::json!({ "type": "page_view", "ts": 1_700_000_000_000_u64 + id as u64, "props": { "title": pick(random, &TITLES),
                "referrer": "https://www.google.com/", "viewport": [1920, 1080], "ratio": 1.25, "dnt": false } })
            .to_string(),
        ),
        2 => Sent::post(
            "/rest/messages",
            "application/json",
            serde_json::json!({ "to": ["team"], "text": pick(random, &COMMENTS), "attachments": [], "thread_ts": "1712345678.000200" })
                .to_string(),
        ),
        3 => Sent {
            method: "POST",
            ..Sent::post(
                format!("/api/profile/{id}"),
                "application/json",
                serde_json::json!({ "displayName": pick(random, &NAMES), "bio": pick(random, &COMMENTS), "tz": "Europe/Berlin",
                    "locale": "de_DE.UTF-8", "avatar": null, "notify": { "email": true, "push": false } })
                .to_string(),
            )
        },
        4 => Sent::get(format!("/odata/Products?$filter=Price%20gt%2020&$orderby=Name%20desc&$top=10&$skip={id}&$expand=Category")),
        _ => Sent::post(
            "/hooks/build",
            "application/json",
            serde_json::json!({ "ref": "refs/heads/main", "after": hex(random, 40), "repository": { "full_name": "team/project",
                "clone_url": "https://git.example.com/team/project.git" }, "commits": [ { "message": pick(random, &TITLES),
                "author": { "name": pick(random, &NAMES) }, "added": ["src/lib.rs"], "removed": [], "modified": ["README.md"] } ] })
            .to_string(),
        ),
    }
}

pub fn upload(random: &mut Random, index: usize) -> Sent {
    const FILES: [(&str, &str); 8] = [
        ("holiday.jpg", "image/jpeg"),
        ("Rechnung_2024-05.pdf", "application/pdf"),
        ("données (1).xlsx", "application/octet-stream"),
        ("avatar.png", "image/png"),
        ("notes.txt", "text/plain"),
        ("export.csv", "text/csv"),
        ("my.file.v2.zip", "application/zip"),
        ("IMG_0001.HEIC", "image/heic"),
    ];
    let (name, content_type) = FILES[index % FILES.len()];
    let boundary = format!("----WebKitFormBoundary{}", token(random, 16).replace(['-', '_'], "x"));
    let mut body = Vec::new();
    for (field, value) in [
        ("title", pick(random, &TITLES)),
        ("description", pick(random, &COMMENTS)),
        ("album_id", "42"),
    ] {
        body.extend(
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n").into_bytes(),
        );
    }
    body.extend(
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: {content_type}\r\n\r\n"
        )
        .into_bytes(),
    );
    body.extend((0..2_000).map(|_| random.next() as u8));
    body.extend(format!("\r\n--{boundary}--\r\n").into_bytes());
    Sent::post("/media/upload", &format!("multipart/form-data; boundary={boundary}"), body)
}

pub fn beacon(random: &mut Random, index: usize) -> Sent {
    let (one, other) = (random.below(999_999_999), 1_700_000_000 + random.below(50_000_000));
    let title = pick(random, &TITLES);
    let cookies = format!(
        "_ga=GA1.2.{one}.{other}; _gid=GA1.2.{other}.{one}; _fbp=fb.1.{other}123.{one}; _gcl_au=1.1.{one}.{other}; \
         OptanonConsent=isGpcEnabled=0&datestamp=Mon+May+06+2024+12%3A00%3A00+GMT%2B0200&version=202403.1.0&groups=C0001%3A1%2CC0002%3A0; \
         CookieConsent={{stamp:%27{}==%27%2Cnecessary:true%2Cpreferences:false%2Cstatistics:true%2Cver:1}}; euconsent-v2={}",
        token(random, 30),
        token(random, 200)
    );
    let sent = match index % 3 {
        0 => Sent::query(
            "/g/collect",
            &[
                ("v", b"2"),
                ("tid", b"G-ABC123DEF4"),
                ("gtm", b"45je4510v889"),
                ("_p", one.to_string().as_bytes()),
                ("cid", format!("{one}.{other}").as_bytes()),
                ("ul", b"en-us"),
                ("sr", b"1920x1080"),
                ("dl", b"https://www.example.com/shop/shoes?utm_source=newsletter&utm_medium=email"),
                ("dt", title.as_bytes()),
                ("en", b"page_view"),
                ("ep.debug", b"false"),
            ],
        ),
        1 => Sent::get(format!(
            "/matomo.php?action_name={}&idsite=1&rec=1&r={one}&h=12&m=30&s=5&url=https%3A%2F%2Fwww.example.com%2F&_id={}&send_image=0&cookie=1&res=2560x1440",
            title.split(|it: char| !it.is_ascii_alphanumeric()).next().unwrap_or_default(),
            hex(random, 16)
        )),
        _ => Sent::post(
            "/beacon",
            "application/json",
            serde_json::json!({ "n": "pageview", "u": "https://www.example.com/blog/?p=12#comments", "d": "example.com", "r": null,
                "w": 1440, "lcp": 1234.5, "cls": 0.01 })
            .to_string(),
        ),
    };
    sent.with("Cookie", &cookies).with("Referer", "https://www.example.com/shop/?ref=home&x=1")
}

pub fn oauth(random: &mut Random, index: usize) -> Sent {
    let (state, code, id) = (token(random, 43), token(random, 73), hex(random, 8));
    match index % 4 {
        0 => Sent::query(
            "/oauth2/authorize",
            &[
                ("response_type", b"code"),
                ("client_id", format!("{id}.apps.example.com").as_bytes()),
                ("redirect_uri", b"https://app.example.com/auth/callback?next=%2Fdashboard"),
                ("scope", b"openid email profile https://api.example.com/auth/drive.readonly"),
                ("state", state.as_bytes()),
                ("code_challenge", state.as_bytes()),
                ("code_challenge_method", b"S256"),
                ("prompt", b"select_account consent"),
            ],
        ),
        1 => Sent::query(
            "/auth/callback",
            &[
                ("code", format!("4/0{code}").as_bytes()),
                ("state", state.as_bytes()),
                ("session_state", format!("{id}-{id}").as_bytes()),
                ("iss", b"https://login.example.com/realms/main"),
            ],
        ),
        2 => Sent::form(
            "/oauth2/token",
            &[
                ("grant_type", b"authorization_code"),
                ("code", code.as_bytes()),
                ("redirect_uri", b"https://app.example.com/auth/callback"),
                ("client_secret", state.as_bytes()),
            ],
        ),
        _ => Sent::query(
            "/login",
            &[
                ("returnUrl", b"/account/orders?page=2&sort=date"),
                ("locale", b"en_GB"),
                ("reason", b"session expired"),
            ],
        ),
    }
}

pub fn asset(random: &mut Random, index: usize) -> Sent {
    let hash = hex(random, 8);
    match index % 8 {
        0 => Sent::get(format!("/static/js/main.{hash}.chunk.js")),
        1 => Sent::get(format!("/_next/image?url=%2Fimages%2Fhero.jpg&w=1920&q=75&v={hash}")),
        2 => Sent::get(format!("/fonts/Inter.woff2?v=3.19&{hash}")),
        3 => Sent::get(format!(
            "/css?family=Roboto:ital,wght@0,400;0,700|Open+Sans:wght@300&display=swap&v={hash}"
        )),
        4 => Sent::get(format!(
            "/maps/tiles/{}/{}/{}.png?style=osm-bright",
            3 + index % 15,
            random.below(4_000),
            random.below(4_000)
        )),
        5 => Sent::get(format!(
            "/shop/product-{hash}/size-42;jsessionid={}",
            hex(random, 32).to_uppercase()
        )),
        6 => Sent::get(format!("/download/report%20(final)%20{hash}.pdf")),
        _ => Sent::get(format!(
            "/video/segment-{index}.ts?token=exp=17{}~acl=/*~hmac={hash}",
            random.below(99_999_999)
        ))
        .with("Range", "bytes=0-1048575"),
    }
}

/// The data of a site builder's style editor, and settings in JSON within a form.
pub fn settings(random: &mut Random, index: usize) -> Sent {
    const STYLES: [&str; 6] = [
        ".site-header { background: #fff; padding: 12px 24px; }\n@media (max-width: 600px) { .site-header { display: none; } }",
        "body { font-family: 'Open Sans', Helvetica, sans-serif; line-height: 1.6; }\na:hover { color: rgb(200, 30, 30); }",
        ".grid { display: grid; grid-template-columns: repeat(3, 1fr); gap: calc(1rem + 2px); }",
        ".btn::before { content: \"\\2192\"; margin-right: .5em; }",
        ":root { --main: hsl(210, 50%, 40%); }\n.card > .title { color: var(--main) !important; }",
        ".hero { background-image: url(\"/images/hero.jpg\"); transform: translate(-50%, 0) rotate(3deg); }",
    ];
    let id = random.below(999).to_string();
    match index % 3 {
        0 => Sent::form(
            "/admin/theme",
            &[("custom_css", STYLES[index / 3 % STYLES.len()].as_bytes()), ("id", id.as_bytes())],
        ),
        1 => {
            let state = serde_json::json!({ "columns": ["name", "date", "amount"], "sort": { "by": "date", "desc": true }, "page": id });
            Sent::form(
                "/admin/views/save",
                &[("state", state.to_string().as_bytes()), ("csrf", hex(random, 32).as_bytes())],
            )
        }
        _ => Sent::form(
            "/admin/options",
            &[
                ("date_format", b"d.m.Y H:i"),
                ("permalink_structure", b"/%year%/%monthnum%/%postname%/"),
                ("timezone", b"Europe/Berlin"),
                ("blogname", pick(random, &TITLES).as_bytes()),
                ("admin_email", b"admin@example.com"),
                ("footer", "© 2024 Müller & Söhne | Impressum | Datenschutz".as_bytes()),
            ],
        ),
    }
}

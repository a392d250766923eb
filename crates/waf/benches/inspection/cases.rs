//! Requests of browsers and programs.

/// A request.
pub struct Case {
    pub name: String,
    pub method: &'static str,
    pub target: Vec<u8>,
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub body: Vec<u8>,
}

const BROWSER: [(&str, &str); 12] = [
    ("Host", "shop.example.com"),
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    (
        "Accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    ),
    ("Accept-Language", "de-DE,de;q=0.8,en-US;q=0.5,en;q=0.3"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("Referer", "https://shop.example.com/catalogue/shoes?page=2"),
    ("Connection", "keep-alive"),
    ("Upgrade-Insecure-Requests", "1"),
    ("Sec-Fetch-Dest", "document"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Site", "same-origin"),
    ("Priority", "u=0, i"),
];

const COOKIES: &str = "session=3f2a9c1e8b7d4650a1c2e3f405162738; lang=de; _ga=GA1.2.1234567890.1700000000; \
                       consent=necessary%2Cstatistics; cart=8f14e45fceea167a5a36dedd4bea2543";

/// Words for values in forms.
const WORDS: [&str; 24] = [
    "Thank",
    "you",
    "for",
    "the",
    "order",
    "please",
    "deliver",
    "to",
    "Main",
    "Street",
    "42",
    "Springfield",
    "on",
    "Tuesday",
    "between",
    "nine",
    "and",
    "eleven",
    "o'clock",
    "call",
    "before",
    "(ring",
    "twice)",
    "Müller",
];

fn browser(more: &[(&str, &str)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = BROWSER.iter().chain(more);
    all.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

/// A POST request with this body.
pub fn post(name: &str, media_type: &str, body: Vec<u8>) -> Case {
    let length = body.len().to_string();
    let more = [("Cookie", COOKIES), ("Content-Type", media_type), ("Content-Length", &*length)];
    Case {
        name: name.into(),
        method: "POST",
        target: b"/orders/new".to_vec(),
        headers: browser(&more),
        body,
    }
}

/// A GET request for this target.
pub fn get(name: &str, target: &[u8]) -> Case {
    let headers = browser(&[("Cookie", COOKIES)]);
    Case { name: name.into(), method: "GET", target: target.to_vec(), headers, body: Vec::new() }
}

fn sentence(from: usize, count: usize) -> String {
    let words = (0..count).map(|at| WORDS[(from * 7 + at * 5 + at * at) % WORDS.len()]);
    words.collect::<Vec<_>>().join(" ")
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => out += &format!("%{byte:02X}"),
        }
    }
    out
}

/// A form with several short fields, and free text up to the total size.
fn form(bytes: usize) -> Vec<u8> {
    let mut body = String::from(
        "first_name=Anna&last_name=M%C3%BCller&email=anna.mueller%40example.com&street=Main+Street+42&city=Springfield\
         &zip=01234&country=DE&csrf_token=9b1deb4d3b7d4bad9bdd2b0d7b3dcb6d&amount=129.95&terms=on",
    );
    let mut number = 0;
    while body.len() < bytes {
        let room = bytes - body.len();
        let text = encoded(&sentence(number, 30));
        body += &format!("&note{number}={text}")[..room.min(text.len() + 7)];
        number += 1;
    }
    // A truncated escape would cause a finding.
    let cut = body.rfind('%').filter(|at| at + 3 > body.len()).unwrap_or(body.len());
    body.truncate(cut);
    body.into_bytes()
}

fn json(bytes: usize) -> Vec<u8> {
    let mut body = String::from(
        "{\"customer\":{\"id\":4711,\"name\":\"Anna Müller\",\"email\":\"anna.mueller@example.com\"},\"lines\":[",
    );
    let mut number = 0;
    while body.len() + 250 < bytes {
        let text = sentence(number, 12);
        body += &format!(
            "{{\"sku\":\"SKU-{number:05}\",\"quantity\":{},\"price\":19.95,\"gift\":false,\"note\":\"{text}\"}},",
            number % 5
        );
        number += 1;
    }
    body.pop();
    body += "],\"currency\":\"EUR\"}";
    body.into_bytes()
}

/// All requests that are measured.
pub fn all() -> Vec<Case> {
    let query: &[u8] = b"/catalogue/search?q=red+running+shoes&category=sport&size=42&sort=price_asc&page=3&utm_source=newsletter\
                         &utm_campaign=summer-2026&ref=https%3A%2F%2Fwww.example.org%2Fblog";
    let attack: &[u8] = b"/catalogue/search?q=1'+UNION+SELECT+username,password+FROM+users--&page=3&x=%3Cscript%3Ealert(1)%3C/script%3E";
    vec![
        get("GET without arguments", b"/catalogue/shoes/index.html"),
        get("GET with a query string", query),
        get("GET with an attack", attack),
        post("form of 1 kB", "application/x-www-form-urlencoded", form(1_000)),
        post("form of 8 kB", "application/x-www-form-urlencoded", form(8_000)),
        post("JSON of 1 kB", "application/json", json(1_000)),
        post("JSON of 8 kB", "application/json", json(8_000)),
    ]
}

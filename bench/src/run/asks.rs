//! Browser requests to a shop, with bodies, for web application firewalls. No request looks like an attack at paranoia
//! level 1.

use std::net::SocketAddr;

use super::products::Guard;
use crate::load::{RequestSpec, Target};

/// The requests to a firewall, and the virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirewallLoad {
    /// The virtual server.
    pub guard: Guard,
    /// The requests, by weight.
    pub asks: &'static [Ask],
    /// Whether the same request goes to the virtual server without a firewall right before.
    pub is_beside_unguarded: bool,
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The path before the object's length; the length ends the path.
    pub folder: &'static str,
    /// The query, with its question mark.
    pub query: &'static str,
    /// The request's contents.
    pub content: Content,
    /// The request's share of all requests.
    pub weight: u32,
}

/// The contents of a request. A request with a body of this many bytes is a POST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// No body: a GET.
    Nothing,
    /// `application/x-www-form-urlencoded`
    Form(usize),
    /// `application/json`
    Json(usize),
}

const SEARCH: &str = "?q=red+shoes&size=42&sort=price&page=2";

const fn get(folder: &'static str, query: &'static str, weight: u32) -> Ask {
    Ask { folder, query, content: Content::Nothing, weight }
}

const fn post(folder: &'static str, content: Content, weight: u32) -> Ask {
    Ask { folder, query: "", content, weight }
}

/// A search.
pub const GET: &[Ask] = &[get("/shop/search/", SEARCH, 1)];
/// Forms.
pub const FORM_1K: &[Ask] = &[post("/shop/order/", Content::Form(1_024), 1)];
/// A long form.
pub const FORM_8K: &[Ask] = &[post("/shop/order/", Content::Form(8_192), 1)];
/// A basket.
pub const JSON_8K: &[Ask] = &[post("/shop/basket/", Content::Json(8_192), 1)];
/// 80% GET and 20% POST. A third of each goes to the folder that [`Guard::Third`] inspects.
pub const SHOP: &[Ask] = &[
    get("/account/", SEARCH, 4),
    get("/catalogue/", SEARCH, 4),
    get("/news/", SEARCH, 4),
    post("/account/", Content::Form(1_024), 1),
    post("/catalogue/", Content::Form(1_024), 1),
    post("/news/", Content::Form(1_024), 1),
];

/// Fields of a browser's requests.
const FIELDS: [(&str, &str); 7] = [
    ("Host", "shop.example"),
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0"),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "en-GB,en;q=0.8"),
    ("Accept-Encoding", "identity"),
    ("Referer", "http://shop.example/shop/"),
    ("Cookie", "session=0123456789abcdef; consent=all"),
];

impl FirewallLoad {
    /// Requests to that virtual server for objects of that length.
    pub fn targets(&self, address: SocketAddr, object_bytes: u64) -> Vec<Target> {
        self.asks.iter().map(|ask| ask.target(address, object_bytes)).collect()
    }
}

impl Ask {
    fn target(&self, address: SocketAddr, object_bytes: u64) -> Target {
        let path = format!("{}{object_bytes}{}", self.folder, self.query);
        let mut request = RequestSpec::get(address, &path);
        request.fields =
            FIELDS.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        if let Some((kind, body)) = self.content.body() {
            request.method = "POST".into();
            request.fields.push(("Content-Type".into(), kind.into()));
            request.body = body.into_bytes();
        }
        request.into_target(self.weight)
    }
}

impl Content {
    /// The body's content type and text.
    fn body(self) -> Option<(&'static str, String)> {
        match self {
            Self::Nothing => None,
            Self::Form(bytes) => Some(("application/x-www-form-urlencoded", form(bytes))),
            Self::Json(bytes) => Some(("application/json", json(bytes))),
        }
    }
}

const WORDS: &str = "please leave the parcel with the neighbour in number fourteen";

/// An order: name, address and notes to each line.
fn form(bytes: usize) -> String {
    let mut text = String::from(
        "first_name=Anna&last_name=Berger&email=anna.berger%40mail.example&street=12+Harbour+Road&city=Bristol\
         &postcode=BS1+4QD&country=GB&phone=0117+496+0123",
    );
    let words = WORDS.replace(' ', "+");
    let mut line = 0;
    while text.len() < bytes {
        line += 1;
        text += &format!("&article_{line}=RS{}&note_{line}={words}", 1_000 + line);
    }
    text.truncate(bytes);
    text
}

/// A basket of articles.
fn json(bytes: usize) -> String {
    const END: &str = "\"}]}";
    let mut text = String::from(
        "{\"customer\":{\"name\":\"Anna Berger\",\"city\":\"Bristol\",\"country\":\"GB\"},\"articles\":[",
    );
    let mut line = 0;
    while text.len() < bytes {
        let comma = if line == 0 { "" } else { "," };
        line += 1;
        text += &format!(
            "{comma}{{\"number\":{},\"size\":42,\"price\":79.9,\"gift\":false,\"note\":\"{WORDS}\"}}",
            1_000 + line
        );
    }
    // The last note fills the remaining length.
    let last = "\"note\":\"";
    let notes = text.rmatch_indices(last).map(|(place, _)| place + last.len());
    let begin = notes.into_iter().find(|begin| begin + END.len() <= bytes).unwrap_or(0);
    text.truncate(begin);
    let left = bytes.saturating_sub(begin + END.len());
    text.extend(WORDS.chars().cycle().take(left));
    text + END
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_as_long_as_they_are_called() {
        for bytes in [1_024, 8_192, 8_193] {
            let form = form(bytes);
            assert_eq!(form.len(), bytes);
            assert!(form.split('&').all(|field| field.contains('=')), "{form}");
            let json = json(bytes);
            assert_eq!(json.len(), bytes);
            let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            assert!(value["articles"].as_array().is_some_and(|articles| articles.len() > 5));
        }
    }

    #[test]
    fn the_shop_has_four_gets_for_a_post_and_a_third_to_look_into() {
        let sum = |is_meant: fn(&Ask) -> bool| {
            let weights = SHOP.iter().filter(|ask| is_meant(ask)).map(|ask| ask.weight);
            f64::from(weights.sum::<u32>())
        };
        let all = sum(|_| true);
        assert!((sum(|ask| ask.content == Content::Nothing) / all - 0.8).abs() < 1e-9);
        assert!((sum(|ask| ask.folder == "/account/") / all - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn requests_are_a_browsers() {
        let address: SocketAddr = "127.0.0.1:80".parse().expect("an address");
        let text = |asks| {
            let load = FirewallLoad { guard: Guard::All, asks, is_beside_unguarded: false };
            let targets = load.targets(address, 1_024);
            String::from_utf8(targets[0].request.clone()).expect("text")
        };
        let request = text(GET);
        let first = "GET /shop/search/1024?q=red+shoes&size=42&sort=price&page=2 HTTP/1.1\r\n";
        assert!(request.starts_with(first), "{request}");
        assert!(request.contains("\r\nHost: shop.example\r\n"), "{request}");
        assert!(text(JSON_8K).contains("\r\nContent-Length: 8192\r\n"));
        assert!(text(FORM_1K).starts_with("POST /shop/order/1024 HTTP/1.1\r\n"));
    }
}

//! A cache of texts that many requests share: field names, names of arguments in queries, and values that browsers send
//! identically.
//!
//! The result of rules for a text depends only on its bytes: the transformations that change it, and the operators that may
//! match it. So frequent texts are analysed once, and each request starts with a copy of the results. Only values of fields
//! without secrets are cached. A request finds a cached text only if it contains the same bytes, so it reveals nothing about
//! other requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::handle::{Inspection, begin_with};
use super::options::Options;
use super::request::{Request, parts};
use super::texts::Texts;
use crate::hash::hash;
use crate::plan::View;

/// The fields whose values are cached.
const FIELDS: [&[u8]; 22] = [
    b"accept",
    b"accept-charset",
    b"accept-encoding",
    b"accept-language",
    b"cache-control",
    b"connection",
    b"content-type",
    b"dnt",
    b"host",
    b"pragma",
    b"priority",
    b"sec-ch-ua",
    b"sec-ch-ua-mobile",
    b"sec-ch-ua-platform",
    b"sec-fetch-dest",
    b"sec-fetch-mode",
    b"sec-fetch-site",
    b"sec-fetch-user",
    b"te",
    b"upgrade-insecure-requests",
    b"user-agent",
    b"x-requested-with",
];
/// Maximum length of a cached text, in bytes.
const TEXT_BYTES_MAX: usize = 256;
/// Maximum number of texts that transformations derive from one cached text. Their analysis delays the request that adds the
/// text.
const MADE_MAX: usize = 24;
/// Maximum number of bytes and texts in total, because they are copied for each request.
const ALL_BYTES_MAX: usize = 32 << 10;
const ALL_TEXTS_MAX: usize = 512;
/// Maximum number of cached texts, not counting those derived by transformations.
const TEXTS_MAX: usize = 96;
/// Maximum number of cached texts below which names of arguments are added. The others belong to fields.
const NAMES_TEXTS_MAX: usize = 64;
/// Maximum number of arguments of a query whose names are counted.
const NAMES_MAX: usize = 12;
const _: () = assert!(NAMES_MAX * (WINDOW_SAMPLES as usize) < COUNTED_MAX);
/// One in this many requests is sampled for common texts.
const SAMPLE: u32 = 16;
/// A text is common if this many samples in a window contain it.
const SEEN_MIN: u8 = 4;
const WINDOW_SAMPLES: u32 = 256;
/// Number of windows after which the cache is cleared, because common texts change with time.
const WINDOWS: u32 = 64;
/// Maximum number of texts that are counted in a window.
const COUNTED_MAX: usize = 4_096;

/// The common texts of the requests that use one view.
#[derive(Debug)]
pub struct CommonTexts {
    view: Arc<View>,
    learned: Mutex<LearnedTexts>,
}

#[derive(Debug)]
struct LearnedTexts {
    texts: Arc<Texts>,
    /// The number of added texts.
    count: usize,
    requests: u32,
    samples: u32,
    /// The count of each text in this window, by its hash.
    seen: HashMap<u64, u8>,
}

/// The count of a refused text, which is not analysed again in this window.
const REFUSED: u8 = u8::MAX;

impl LearnedTexts {
    fn nothing() -> Self {
        let texts = Arc::new(Texts::new());
        Self { texts, count: 0, requests: 0, samples: 0, seen: HashMap::new() }
    }

    /// Counts an unknown text. Returns whether it has become common.
    fn is_common(&mut self, text: &[u8]) -> bool {
        if self.texts.has(text) || self.seen.len() >= COUNTED_MAX {
            return false;
        }
        let seen = self.seen.entry(hash(text)).or_default();
        if *seen < SEEN_MIN {
            *seen += 1;
        }
        *seen == SEEN_MIN
    }

    /// Increments the request counter. Returns whether this request is sampled.
    fn is_sample(&mut self) -> bool {
        self.requests = self.requests.wrapping_add(1);
        if !self.requests.is_multiple_of(SAMPLE) {
            return false;
        }
        self.samples = self.samples.wrapping_add(1);
        if self.samples.is_multiple_of(WINDOW_SAMPLES) {
            self.seen.clear();
            if self.samples.is_multiple_of(WINDOW_SAMPLES * WINDOWS) {
                (self.texts, self.count) = (Arc::new(Texts::new()), 0);
            }
        }
        true
    }
}

impl CommonTexts {
    /// An empty cache for requests that use this view.
    pub fn new(view: Arc<View>) -> Self {
        Self { view, learned: Mutex::new(LearnedTexts::nothing()) }
    }

    /// The view.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Starts an inspection with a request's head and the cached texts.
    pub fn begin(&self, options: &Options, request: &Request<'_>) -> Inspection {
        begin_with(Arc::clone(&self.view), self.of(request), options, request)
    }

    /// The cached texts for a request. A sampled request may add one.
    fn of(&self, request: &Request<'_>) -> Texts {
        let (known, new) = {
            let mut learned = self.learned();
            let separator = self.view.rules.settings.argument_separator;
            let is_sample = learned.is_sample();
            let new = is_sample.then(|| common(&mut learned, request, separator)).flatten();
            (Arc::clone(&learned.texts), new)
        };
        if let Some(text) = new {
            self.learn(&known, text);
        }
        known.copy()
    }

    /// Adds these texts, whether they are common or not.
    pub fn teach(&self, texts: &[&[u8]]) {
        for text in texts {
            let known = Arc::clone(&self.learned().texts);
            self.learn(&known, text);
        }
    }

    fn learn(&self, known: &Arc<Texts>, text: &[u8]) {
        let mut more = known.copy();
        let is_small = more.learn(text, &self.view, MADE_MAX);
        let (texts, bytes) = more.total();
        let has_room = is_small && texts <= ALL_TEXTS_MAX && bytes <= ALL_BYTES_MAX;
        let mut learned = self.learned();
        if !has_room {
            learned.seen.insert(hash(text), REFUSED);
        } else if Arc::ptr_eq(&learned.texts, known) {
            // Otherwise another request has added a text meanwhile. This text is then added by a later request.
            learned.texts = Arc::new(more);
            learned.count += 1;
        }
    }

    /// Locks the cache. A poisoned lock is safe to use, because no holder leaves the data in an inconsistent state.
    fn learned(&self) -> MutexGuard<'_, LearnedTexts> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first text that became common with this request, if the cache has room. All texts are counted, so further ones can be
/// added by later requests.
fn common<'a>(
    learned: &mut LearnedTexts,
    request: &Request<'a>,
    separator: u8,
) -> Option<&'a [u8]> {
    if learned.count >= TEXTS_MAX {
        return None;
    }
    let names = request.headers.iter().map(|(name, _)| *name);
    let values = request.headers.iter().filter(|(name, _)| is_remembered(name));
    let texts = [request.method, request.protocol].into_iter();
    let texts = texts.chain(names).chain(values.map(|(_, value)| *value));
    let names_max = if learned.count < NAMES_TEXTS_MAX { NAMES_MAX } else { 0 };
    let texts = texts.chain(argument_names(request.target, separator, names_max));
    let mut common = None;
    for text in texts.filter(|text| (1..=TEXT_BYTES_MAX).contains(&text.len())) {
        if learned.is_common(text) {
            common.get_or_insert(text);
        }
    }
    common
}

/// The names of the first arguments in the query of a target. An argument without a value may be a secret, and encoded names
/// are rare.
fn argument_names(target: &[u8], separator: u8, count_max: usize) -> impl Iterator<Item = &[u8]> {
    let arguments = parts(target).query.split(move |byte| *byte == separator).take(count_max);
    let names = arguments.filter_map(|argument| {
        let end = memchr::memchr(b'=', argument)?;
        argument.get(..end)
    });
    names.filter(|name| !name.iter().any(|byte| matches!(byte, b'%' | b'+')))
}

/// Whether the values of a field are cached.
fn is_remembered(name: &[u8]) -> bool {
    FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspection::{BodyLength, Mode};
    use crate::plan::{Files, RuleSet, Settings};

    const RULES: &str = r#"
SecRule REQUEST_HEADERS "@rx (?i)ev[i1]l" "id:1,phase:1,pass,t:none,t:lowercase"
SecRule REQUEST_HEADERS "@rx Sensitive" "id:2,phase:1,pass,t:none"
SecRule REQUEST_HEADERS "@rx ^sensitive$" "id:3,phase:1,pass,t:none,t:lowercase"
"#;

    struct OneFile;

    impl Files for OneFile {
        fn find(&mut self, _: &str, _: &str) -> Vec<String> {
            Vec::new()
        }

        fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
            Ok(RULES.as_bytes().to_vec())
        }
    }

    fn common() -> CommonTexts {
        let rules = RuleSet::compile(&["rules".into()], &mut OneFile).expect("rules");
        let view = View::new(Arc::new(rules), &Settings::default()).expect("a view");
        CommonTexts::new(Arc::new(view))
    }

    /// The rules that match a request with these fields.
    fn found(common: &CommonTexts, headers: &[(&str, &str)]) -> Vec<u64> {
        found_at("/", common, headers)
    }

    fn found_at(target: &str, common: &CommonTexts, headers: &[(&str, &str)]) -> Vec<u64> {
        let fields: Vec<(&[u8], &[u8])> =
            headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        let here = (std::net::Ipv4Addr::LOCALHOST.into(), 80);
        let request = Request {
            client: here,
            server: here,
            method: b"GET",
            received_target: target.as_bytes(),
            target: target.as_bytes(),
            protocol: b"HTTP/1.1",
            headers: &fields,
            body: BodyLength::None,
            changed_cookies: &[],
            unique_id: b"1",
        };
        let options = Options::new(Mode::Detect);
        let mut inspection = common.begin(&options, &request);
        inspection.request_headers();
        inspection.matches().iter().map(|it| it.id).collect()
    }

    fn knows(common: &CommonTexts, text: &str) -> bool {
        common.learned().texts.has(text.as_bytes())
    }

    #[test]
    fn what_many_requests_have_is_learned_but_no_secret() {
        let common = common();
        let headers = [
            ("Host", "shop.example"),
            ("User-Agent", "Browser/1"),
            ("Sec-Fetch-Mode", "navigate"),
            ("Cookie", "session=secret"),
            ("Authorization", "Bearer secret"),
            ("X-Token", "secret"),
        ];
        let rounds = SAMPLE * u32::from(SEEN_MIN);
        for round in 1..=rounds {
            assert!(!knows(&common, "GET"), "before round {round}");
            found(&common, &headers);
        }
        assert!(knows(&common, "GET") && !knows(&common, "Browser/1"), "one text at a time");
        (0..16 * SAMPLE).for_each(|_| drop(found(&common, &headers)));
        for text in ["GET", "HTTP/1.1", "Host", "Cookie", "shop.example", "Browser/1", "navigate"] {
            assert!(knows(&common, text), "{text}");
        }
        for text in ["session=secret", "session", "secret", "Bearer secret", "bearer secret"] {
            assert!(!knows(&common, text), "{text}");
        }
    }

    #[test]
    fn names_of_arguments_are_learned_but_neither_values_nor_texts_without_a_name() {
        let common = common();
        let target = "/?page=secret&secret&a%20b=secret&sort=";
        (0..16 * SAMPLE).for_each(|_| drop(found_at(target, &common, &[])));
        for (text, expected) in
            [("page", true), ("sort", true), ("secret", false), ("a%20b", false), ("a b", false)]
        {
            assert_eq!(knows(&common, text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_learned_changes_no_verdict() {
        let values = [
            "Sensitive",
            "sensitive",
            "SENSITIVE",
            "evil",
            "EV1L",
            "an evil one",
            "devil",
            "kind",
            "",
        ];
        let fresh: Vec<_> =
            values.iter().map(|value| found(&common(), &[("Accept", value)])).collect();
        assert_eq!(fresh[0], [2, 3]);
        assert_eq!(fresh[1], [3]);
        // Each value, after any other value was cached.
        for first in values {
            let common = common();
            common.teach(&[first.as_bytes()]);
            for (value, expected) in values.iter().zip(&fresh) {
                assert_eq!(found(&common, &[("Accept", value)]), *expected, "{first:?} {value:?}");
            }
        }
    }

    #[test]
    fn memory_is_bounded_and_begins_anew() {
        let common = common();
        let (rounds, mut known) = (SAMPLE * WINDOW_SAMPLES * WINDOWS, 0);
        for round in 0..rounds - 1 {
            let number = round / (u32::from(SEEN_MIN) * SAMPLE);
            let agent = format!("Browser/{}", number % 400);
            found(&common, &[("User-Agent", &agent)]);
            let learned = common.learned();
            assert!(learned.count <= TEXTS_MAX && learned.seen.len() <= COUNTED_MAX);
            known = known.max(learned.count);
        }
        assert_eq!(known, TEXTS_MAX);
        found(&common, &[]);
        assert!(common.learned().count < TEXTS_MAX, "it began anew");
    }

    #[test]
    fn a_text_of_which_too_much_is_made_is_not_learned() {
        let common = common();
        let known = Arc::clone(&common.learned().texts);
        assert!(!known.copy().learn(b"LOUD", &common.view, 0));
        assert!(known.copy().learn(b"LOUD", &common.view, 1));
        for number in 0..2 * ALL_TEXTS_MAX {
            common.teach(&[format!("TEXT {number}").as_bytes()]);
        }
        let (texts, bytes) = common.learned().texts.total();
        assert!(texts <= ALL_TEXTS_MAX && bytes <= ALL_BYTES_MAX, "{texts} {bytes}");
    }
}

//! One request and its response, to compile and evaluate expressions on.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use weir_http::h1::{HeadLimits, ParseProgress, parse_request, parse_response};
use weir_http::message::{Method, RequestHead, ResponseHead, Scheme};
use weir_http::path::TargetForm;

use crate::jwt::{self, TokenReader};

use super::{
    DataSet, DataSets, DatagramFacts, Evaluation, Facts, Fields, MemberFacts, Phase, PoolFact,
    ResponseFacts, Scope, Slots, Surroundings, TlsFacts,
};

/// Surroundings at 03:55:33 on Sunday, 2026-11-29.
#[derive(Debug)]
pub struct Here;

impl Surroundings for Here {
    fn seed(&self) -> u64 {
        1
    }

    fn local_s(&self) -> i64 {
        1_795_924_533
    }

    fn pool(&self, number: u32, fact: PoolFact) -> i64 {
        match (number, fact) {
            (3, PoolFact::UpMembers) => 2,
            (3, PoolFact::Connections) => 17,
            _ => 0,
        }
    }
}

pub const MEMBER: MemberFacts<'static> = MemberFacts {
    address: Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 11)), 9001)),
    name: "web.example:9001",
    pool: "web",
};

/// The pools `web` and `api`.
pub fn pools() -> BTreeMap<&'static str, usize> {
    BTreeMap::from([("web", 3), ("api", 4), ("", 5)])
}

/// See [`Sample::new`].
pub struct Sample {
    input: Vec<u8>,
    head: RequestHead,
    response_input: Vec<u8>,
    response: ResponseHead,
    pub client: Option<SocketAddr>,
    pub tls: Option<TlsFacts<'static>>,
    pub datagram: Option<DatagramFacts<'static>>,
    pub around: &'static dyn Surroundings,
    pub data: DataSets,
    pub pools: BTreeMap<&'static str, usize>,
    pub slots: Slots,
}

const LIMITS: HeadLimits = HeadLimits { head_size_max: 65_536, headers_max: 100 };

impl Sample {
    /// A request head from 192.0.2.1:40000 to 192.0.2.80:443, answered with 404.
    pub fn new(request: &str) -> Self {
        let response = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nServer: a\r\nserver: b\r\n\
             Set-Cookie: sid=a=b; Path=/; sid=no\r\nset-cookie: theme =\"x\" ;\r\nSet-Cookie: SID=2\r\n\
             Set-Cookie: twice=1\r\nSet-Cookie: ; twice=3\r\nSet-Cookie: twice=2\r\n\r\n";
        Self::with_response(request, response)
    }

    pub fn with_response(request: &str, response: &str) -> Self {
        let mut sample = Self {
            input: request.into(),
            head: RequestHead::new(),
            response_input: response.into(),
            response: ResponseHead::new(),
            client: Some("192.0.2.1:40000".parse().unwrap()),
            tls: None,
            datagram: None,
            around: &Here,
            data: data_sets(),
            pools: pools(),
            slots: slots(),
        };
        let parsed = parse_request(&sample.input, &LIMITS, TargetForm::default(), &mut sample.head);
        assert!(matches!(parsed, Ok(ParseProgress::Complete { .. })), "{parsed:?}: {request}");
        let parsed =
            parse_response(&sample.response_input, &LIMITS, Method::Get, &mut sample.response);
        assert!(matches!(parsed, Ok(ParseProgress::Complete { .. })), "{parsed:?}: {response}");
        sample
    }

    /// A scope for expressions that may read everything.
    pub fn scope(&mut self) -> Scope<'_> {
        let (phase, has_datagrams) = (Phase::Response, true);
        let Self { data, pools, slots, .. } = self;
        Scope { phase, has_datagrams, data, pools, slots }
    }

    pub fn facts(&self) -> Facts<'_> {
        Facts {
            request: &self.head,
            request_input: &self.input,
            client: self.client,
            server: Some("192.0.2.80:443".parse().unwrap()),
            scheme: if self.tls.is_some() { Scheme::Https } else { Scheme::Http },
            tls: self.tls,
            response: Some(ResponseFacts {
                head: &self.response,
                input: &self.response_input,
                member: Some(MEMBER),
            }),
            datagram: self.datagram.as_ref(),
            around: self.around,
            unix_s: Some(NOW_S),
        }
    }

    /// Evaluates with fields for the expressions compiled so far.
    pub fn evaluate<R>(&self, evaluate: impl FnOnce(&mut Evaluation<'_>) -> R) -> R {
        let mut fields = Fields::new(Arc::new(self.slots.clone()));
        evaluate(&mut fields.begin(self.facts()))
    }
}

/// The time of the evaluation of samples.
pub const NOW_S: u64 = 1_000;

/// Slots with `jwt['api']`, whose tokens are in `Authorization`, and `jwt['other']`, which has no keys.
pub fn slots() -> Slots {
    let mut slots = Slots::new();
    slots.add_token_reader("api", Arc::new(jwt::testing::reader()));
    let other = TokenReader::new(jwt::testing::settings(), None);
    slots.add_token_reader("other", Arc::new(other));
    slots
}

pub const BLOCKED: [&str; 11] =
    ["/admin", "/a", "/a/b", "/blocked", "x", "a.example", "b", "1", "2", "GET", "/private"];
pub const PREFIXES: [&str; 4] = ["/a", "/api/", "a", "h1"];
pub const OFFICE: [&str; 4] = ["10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "198.51.100.0/25"];
pub const TARGETS: [(&str, &str); 3] = [("a.example", "/a"), ("b", "x"), ("", "empty")];

/// The data sets `blocked`, `prefixes`, `office` and `targets`.
pub fn data_sets() -> DataSets {
    let mut data = DataSets::new();
    data.insert("blocked", DataSet::strings(BLOCKED));
    data.insert("prefixes", DataSet::strings(PREFIXES));
    data.insert("office", DataSet::addresses(OFFICE).unwrap());
    data.insert("targets", DataSet::map(TARGETS));
    data
}

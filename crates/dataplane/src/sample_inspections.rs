//! Long inspections, for tests.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};

use weir_exchange::arena::ExchangeKey;
use weir_exchange::parts::inspection_job::{InspectionJob, Ticket, job};
use weir_waf::inspection::{
    BodyLength, Inspection, Mode, Options, Question, Request, Step, TimeLimit, Turn, judge,
};
use weir_waf::plan::{Files, RuleSet, Settings, View};

struct Rules;

impl Files for Rules {
    fn find(&mut self, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(b"SecRule ARGS \"@rx ^never\" \"id:1,phase:2,deny\"".to_vec())
    }
}

static VIEW: LazyLock<Arc<View>> = LazyLock::new(|| {
    let rules = RuleSet::compile(&["rules.conf".into()], &mut Rules).expect("rules");
    Arc::new(View::new(Arc::new(rules), &Settings::default()).expect("a view"))
});

/// An inspection that takes one turn.
pub fn short(number: u64) -> (Ticket, Box<InspectionJob>) {
    sample(number, || 0)
}

/// An inspection that takes several turns: the clock advances by a millisecond with each reading.
pub fn long(number: u64) -> (Ticket, Box<InspectionJob>) {
    thread_local! {
        static NOW_US: Cell<u64> = const { Cell::new(0) };
    }
    sample(number, || {
        NOW_US.set(NOW_US.get() + 1_000);
        NOW_US.get()
    })
}

/// An inspection that panics.
pub fn broken(number: u64) -> (Ticket, Box<InspectionJob>) {
    sample(number, || panic!("as told"))
}

fn sample(number: u64, now_us: fn() -> u64) -> (Ticket, Box<InspectionJob>) {
    let address = (IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
    let request = Request {
        client: address,
        server: address,
        method: b"GET",
        received_target: b"/",
        target: b"/",
        protocol: b"HTTP/1.1",
        headers: &[],
        body: BodyLength::None,
        changed_cookies: &[],
        unique_id: b"1",
    };
    let time = Some(TimeLimit { max_us: u64::MAX, now_us });
    let options = Options { time, ..Options::new(Mode::Block) };
    let inspection = Inspection::begin(Arc::clone(&VIEW), &options, &request);
    let held_back = Turn { input_bytes_max: 0, ..Turn::WHOLE };
    match judge(inspection, Question::Body(None), held_back) {
        Step::More(unfinished) => job(number, ExchangeKey::NOTHING, unfinished),
        Step::Done(..) => panic!("it was not held back"),
    }
}

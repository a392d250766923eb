//! The transaction's request to an authorisation service, and the service's responses.

use weir_exchange::arena::ExchangeKey;
use weir_exchange::parts::deferred_work::DeferredWork;
use weir_exchange::parts::reply::Reply;
use weir_exchange::transaction::stages;
use weir_http::h1::{HeadLimits, parse_response};
use weir_http::message::{Method, ResponseHead};

use super::cells::On;
use super::router::Router;

const LIMITS: HeadLimits = HeadLimits { head_size_max: 16 * 1024, headers_max: 100 };

/// Executes deferred work of the transaction: begins or cancels its request to the service.
pub fn run(router: &mut Router, deferred: DeferredWork) {
    match deferred {
        DeferredWork::Client(_) => unreachable!("the client goes on by itself here"),
        DeferredWork::Inspect(job) => router.world.jobs.push(*job),
        DeferredWork::Begin(order) => {
            let number = router.world.plan.number;
            let text = String::from_utf8_lossy(&order.text);
            assert!(text.contains(&format!("X-Forwarded-Uri: /{number}\r\n")), "{text}");
            if !router.with_http(None, |it, _| stages::awaits_child(it)) {
                return;
            }
            assert!(router.world.asked.is_none(), "it is asked once");
            let child = ExchangeKey::from_bits(9 << 32 | number as u64);
            router.world.asked = child;
            router.with_http(Some(On::ServiceAsked), |it, _| {
                let Some(child) = child else { return };
                stages::child_began(it.ends.context.as_deref_mut(), child);
            });
        }
        DeferredWork::Leave { child, .. } => {
            assert_eq!(router.world.asked.take(), Some(child), "what was asked is left");
        }
    }
}

/// The service responds with this status; 0: it fails.
pub fn says(router: &mut Router, status: u16) {
    let Some(child) = router.world.asked.take() else { return };
    router.world.book.is_let_in |= status == 200;
    let reply = (status != 0).then(|| {
        let number = router.world.plan.number;
        let text =
            format!("HTTP/1.1 {status} Said\r\nX-User: {number}\r\nContent-Length: 2\r\n\r\n");
        let text = text.into_bytes();
        let mut head = ResponseHead::new();
        parse_response(&text, &LIMITS, Method::Get, &mut head).expect("a head");
        Reply { head, text, body: Some(b"no".to_vec()), body_bytes: 2, is_whole: true }
    });
    router.with_http(Some(On::ServiceAnswers), |it, at| {
        stages::child_ended(it, at, Some(child), reply.map(Box::new))
    });
}

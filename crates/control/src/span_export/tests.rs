//! The exporter alone: its end, and its behaviour without a collector. `tests/tests/tracing.rs` tests it with a collector.

use std::net::TcpListener;

use weir_config::snapshot::HttpUrl;
use weir_telemetry::reports::Spans;

use super::*;
use crate::events::testing::Captured;
use crate::testing::PATIENCE;

fn exporting(port: u16, timeout_ms: u64) -> Arc<TraceExport> {
    Arc::new(TraceExport {
        url: HttpUrl {
            is_secure: false,
            authority: format!("127.0.0.1:{port}"),
            host: "127.0.0.1".into(),
            port,
            path: "/v1/traces".into(),
        },
        tls: None,
        headers: Vec::new(),
        service_name: "weir".into(),
        timeout_ms,
        interval_ms: 100,
    })
}

fn batch(spans: u32) -> SpanBatch {
    SpanBatch { log: Spans, bytes: vec![0x12, 0], lines: spans }
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn without_a_collector_spans_are_counted_as_failed() {
    let (events, captured) = Captured::new();
    let counters: Arc<AllLogCounters> = Arc::default();
    let export = SpanExport::start(None, Arc::clone(&counters), events.clone()).unwrap();
    export.sender().send(batch(3)).unwrap();
    eventually("they are counted", || counters.spans.failed.load(Relaxed) == 3);
    assert!(export.finish(Instant::now() + PATIENCE).wait());
    assert!(captured.lines(&events).is_empty() && counters.spans.failing().is_none());
}

#[test]
fn workers_do_not_wait_for_a_silent_collector() {
    let (events, captured) = Captured::new();
    let counters: Arc<AllLogCounters> = Arc::default();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = exporting(silent.local_addr().unwrap().port(), 60_000);
    let export = SpanExport::start(Some(to), Arc::clone(&counters), events.clone()).unwrap();
    let sender = export.sender();
    // Only the spans of the first request leave the queue.
    eventually("the queue fills", || sender.try_send(batch(REQUEST_SPANS)).is_err());
    drop(sender);
    assert!(export.finish(Instant::now() + Duration::from_millis(200)).wait());
    let failing = counters.spans.failing().expect("it is told");
    assert!(failing.reason.starts_with("the collector did not answer in "), "{failing:?}");
    assert_eq!(captured.lines(&events).len(), 1);
    assert_eq!(counters.spans.exported.load(Relaxed), 0);
}

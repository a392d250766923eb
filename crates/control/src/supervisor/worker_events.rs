//! Events of workers for operators.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use weir_telemetry::reports::Event;

use crate::events::Events;
use crate::observed_state::{ObservedState, WorkerPanic};
use crate::time::unix_ms;

/// Reports events of workers until the last worker has ended.
pub(super) fn tell(
    worker_events: Receiver<Event>,
    events: Events,
    observed: Arc<ObservedState>,
) -> io::Result<()> {
    let tell = move || {
        for event in worker_events {
            match event {
                Event::MemberEjected { pool, member, eject_ms, why } => {
                    let time = Duration::from_millis(u64::from(eject_ms));
                    let subject = format_args!("member {pool}/{member}");
                    events.warning(
                        subject,
                        format_args!(
                            "is ejected for {time:?}: its requests failed, the last one: {why}"
                        ),
                    );
                }
                Event::Policy { text } => events.info("policy", format_args!("{text}")),
                Event::MemberInsecure { pool, member, error } => {
                    let subject = format_args!("member {pool}/{member}");
                    events.warning(subject, format_args!("its TLS failed: {error}"));
                }
                Event::MemberTakesNoTunnel { pool, member } => {
                    let subject = format_args!("member {pool}/{member}");
                    let what = "takes no WebSocket over HTTP/2: \
                        its SETTINGS lack ENABLE_CONNECT_PROTOCOL (RFC 8441)";
                    events.warning(subject, format_args!("{what}"));
                }
                Event::SocketFailed { error } => {
                    events.error("data path", format_args!("cannot provide a socket: {error}"));
                }
                Event::UdpShareUsed { max } => {
                    let what = "UDP sessions use all descriptors that they may use, and further sessions are refused";
                    let help =
                        "raise LimitNOFILE or `data_plane.udp_descriptors_max`, or limit sessions";
                    events.error("data path", format_args!("{what} ({max} per worker): {help}"));
                }
                Event::WorkerPanicked { worker, message } => {
                    let what = format_args!(
                        "panicked and lost its connections, it starts again: {message}"
                    );
                    events.error(format_args!("worker {worker}"), what);
                    let unix_ms = unix_ms();
                    observed.set_last_panic(WorkerPanic { worker, unix_ms, message });
                }
                Event::InspectionPanicked { worker, message } => {
                    let what = format_args!("an inspection panicked: {message}");
                    events.error(format_args!("worker {worker}"), what);
                }
            }
        }
    };
    thread::Builder::new().name("weir-worker-events".into()).spawn(tell).map(drop)
}

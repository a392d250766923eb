//! The part of a probe for type tcp: sent and expected data.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use weir_config::snapshot::TcpProbe;
use weir_core::monitor::ProbeOutcome;

use super::answer::{BODY_SIZE_MAX, has};
use super::connection::Connection;
use super::failure::{Deadline, Failure, Step};

/// Sends the configured data, and reads until the expected data has arrived.
///
/// A wrong answer is an answer, also if the member keeps the connection open: when more data does not follow within a part
/// of the timeout, the answer is judged. Data has no mark of its end, and a greeting may come before the answer to `send`.
pub(super) async fn ask(
    mut stream: Connection,
    probe: &TcpProbe,
    deadline: Deadline,
) -> Result<ProbeOutcome, Failure> {
    let Some(expected) = &probe.receive else {
        return Ok(ProbeOutcome::Passed);
    };
    if let Some(text) = &probe.send {
        let sent = deadline.within(Step::Listening, stream.write_all(text)).await?;
        sent.map_err(|_| Failure::Closed(Step::Listening))?;
    }
    let mut came = Vec::new();
    loop {
        if came.len() >= BODY_SIZE_MAX {
            return Err(Failure::Answer);
        }
        let mut part = (&mut stream).take((BODY_SIZE_MAX - came.len()) as u64);
        let quiet = if came.is_empty() { deadline } else { deadline.part() };
        let was_silent = came.is_empty();
        let length = match quiet.within(Step::Listening, part.read_buf(&mut came)).await {
            Err(Failure::Timeout(..)) if !was_silent => return Err(Failure::Answer),
            length => length?,
        };
        let has_ended = match length {
            Ok(length) => length == 0,
            Err(_) if came.is_empty() => return Err(Failure::Closed(Step::Listening)),
            Err(_) => true,
        };
        if probe.drain_on.as_ref().is_some_and(|asking| has(&came, asking)) {
            return Ok(ProbeOutcome::Drain);
        }
        if has(&came, expected) {
            return Ok(ProbeOutcome::Passed);
        }
        if has_ended {
            let is_silent = came.is_empty();
            let silence = Failure::Closed(Step::Listening);
            return Err(if is_silent { silence } else { Failure::Answer });
        }
    }
}

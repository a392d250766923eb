//! Sending of datagrams: each datagram is sent at most once, whatever errors the kernel reports.
//!
//! A send may report an error of earlier datagrams (ICMP), or of its own datagrams. In both cases it sent nothing, because
//! the kernel checks the size of a train before it divides it. So datagrams of a failed send, and only these, may be sent
//! again.

use rustix::io::Errno;
use weir_core::datagram::Train;

use crate::datagrams::OutgoingTrain;
use crate::kernel::Descriptor;

/// Maximum number of attempts to send a datagram, because the kernel may report errors of other datagrams.
const TRIES_MAX: u32 = 3;

/// The socket operations that sending needs.
pub(super) trait Wire {
    /// Sends all datagrams at once, or none.
    fn send(&mut self, part: Train<'_>) -> Result<(), Errno>;
    /// Reads and drops errors of earlier datagrams.
    fn forget_errors(&mut self);
    /// See [`took_too_long`](crate::datagrams::took_too_long).
    fn took_too_long(&mut self) -> bool;
}

impl Wire for &Descriptor {
    fn send(&mut self, part: Train<'_>) -> Result<(), Errno> {
        self.send_train(part)
    }

    fn forget_errors(&mut self) {
        Descriptor::forget_errors(self);
    }

    fn took_too_long(&mut self) -> bool {
        Descriptor::took_too_long(self)
    }
}

/// Sends a train on a connected socket, and adds known losses to `lost`. An error means that the member is unreachable.
pub(super) fn send_train(
    wire: &mut impl Wire,
    train: Train<'_>,
    lost: &mut u64,
) -> Result<(), Errno> {
    for part in train.parts() {
        if part.count() == 1 {
            send_one(wire, part, lost)?;
            continue;
        }
        match wire.send(part) {
            Ok(()) => {}
            Err(error) if is_unreachable(error) && !is_late(wire, error) => return Err(error),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => *lost += part.count() as u64,
            // The train may be too long for the path, although each datagram is not.
            Err(_) => part.iter().try_for_each(|bytes| send_one(wire, Train::one(bytes), lost))?,
        }
    }
    Ok(())
}

/// Sends a single datagram.
fn send_one(wire: &mut impl Wire, datagram: Train<'_>, lost: &mut u64) -> Result<(), Errno> {
    let mut told = 0;
    for _ in 0..TRIES_MAX {
        match wire.send(datagram) {
            Ok(()) => {
                // The datagrams that caused the reported errors are lost.
                *lost += told;
                return Ok(());
            }
            // An error from a router belongs to an earlier datagram, and the kernel has already updated the path MTU.
            Err(Errno::MSGSIZE) => {
                wire.forget_errors();
                told += 1;
            }
            Err(Errno::INTR) => {}
            Err(error) if is_late(wire, error) => told += 1,
            Err(error) if is_unreachable(error) => return Err(error),
            Err(_) => break,
        }
    }
    *lost += 1;
    Ok(())
}

fn is_late(wire: &mut impl Wire, error: Errno) -> bool {
    error == Errno::HOSTUNREACH && wire.took_too_long()
}

/// Whether an error means that the member is unreachable: its host or a router has reported this or a prohibition (ICMP), or
/// this host has no route. Other errors concern a single datagram (MSGSIZE) or this host: a full queue, a firewall, or an
/// interface that is down.
pub(super) fn is_unreachable(error: Errno) -> bool {
    matches!(
        error,
        Errno::CONNREFUSED
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::ACCESS
            | Errno::NOPROTOOPT
    )
}

/// Sends a whole batch, even if parts of it fail. Returns the number of lost datagrams.
pub(super) fn send_all(fd: &Descriptor, batch: &[OutgoingTrain<'_>]) -> u64 {
    let (mut at, mut lost) = (0, 0);
    while at < batch.len() {
        match fd.send_to_clients(&batch[at..]) {
            Ok(sent) => at += sent.max(1),
            Err(Errno::INTR) => {}
            Err(error) => {
                // The first train was not accepted. It may be too long for the path, although its datagrams are not.
                lost += lost_of_train(fd, &batch[at], error);
                at += 1;
            }
        }
    }
    lost
}

/// Sends the datagrams of a refused train separately. Returns the number of lost datagrams.
fn lost_of_train(fd: &Descriptor, outgoing: &OutgoingTrain<'_>, error: Errno) -> u64 {
    let train = outgoing.train();
    if train.count() == 1 || matches!(error, Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) {
        return train.count() as u64;
    }
    let is_lost = |bytes| fd.send_to_clients(&[OutgoingTrain::alone(outgoing, bytes)]).is_err();
    train.iter().map(|bytes| u64::from(is_lost(bytes))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All combinations of results are tested for this many sends.
    const TOLD_MAX: u32 = 7;
    const WAY_BYTES: usize = 600;

    /// A kernel that reports errors of earlier datagrams on demand.
    struct Telling {
        /// The results of the next sends, as digits in base 3: success, too long, or an error of an earlier datagram.
        told: u32,
        is_late: bool,
        /// The first byte of each datagram that was sent.
        sent: Vec<u8>,
    }

    impl Wire for Telling {
        fn send(&mut self, part: Train<'_>) -> Result<(), Errno> {
            let told = self.told % 3;
            self.told /= 3;
            self.is_late = told == 2;
            match told {
                1 => return Err(Errno::MSGSIZE),
                2 => return Err(Errno::HOSTUNREACH),
                _ => {}
            }
            if part.count() > 1 && part.size > WAY_BYTES {
                return Err(Errno::MSGSIZE);
            }
            self.sent.extend(part.iter().map(|bytes| bytes[0]));
            Ok(())
        }

        fn forget_errors(&mut self) {}

        fn took_too_long(&mut self) -> bool {
            self.is_late
        }
    }

    /// Whether a datagram would be refused so often that it is dropped.
    fn gives_up(mut told: u32) -> bool {
        let mut row = 0;
        while told > 0 && row < TRIES_MAX {
            row = if told.is_multiple_of(3) { 0 } else { row + 1 };
            told /= 3;
        }
        row == TRIES_MAX
    }

    #[test]
    fn each_datagram_is_sent_once_whatever_is_told_meanwhile() {
        // One datagram; several that fit into the path's MTU as a train, and several that do not; more than one train.
        for (count, size) in [(1, 10), (5, 10), (5, 1_000), (66, 10), (66, 1_000)] {
            let bytes: Vec<u8> = (0..count).flat_map(|number| vec![number; size]).collect();
            let train = Train { bytes: &bytes, size };
            for told in (0..3_u32.pow(TOLD_MAX)).filter(|told| !gives_up(*told)) {
                let (mut wire, mut lost) = (Telling { told, is_late: false, sent: Vec::new() }, 0);
                assert_eq!(send_train(&mut wire, train, &mut lost), Ok(()));
                let all: Vec<u8> = (0..count).collect();
                assert_eq!(wire.sent, all, "{count} of {size} bytes, told {told}");
            }
        }
    }
}

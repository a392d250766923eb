//! Batches of datagrams on a socket that does not belong to a loop (recvmmsg and sendmmsg).

use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::io::Errno;
use weir_core::datagram::{Flow, Train};

pub use crate::datagrams::BATCH_MAX;
use crate::datagrams::{self, Inbox, OutgoingTrain};

/// A buffer for one batch of received datagrams.
#[derive(Debug)]
pub struct ReceivedBatch {
    inbox: Inbox,
    count: usize,
}

impl Default for ReceivedBatch {
    fn default() -> Self {
        Self { inbox: Inbox::new(), count: 0 }
    }
}

impl ReceivedBatch {
    /// Replaces the content by the next batch of the socket, without waiting. Returns the number of messages. If it is
    /// less than [`BATCH_MAX`], the socket's queue was empty after this call.
    pub fn receive(&mut self, socket: impl AsFd) -> Result<usize, Errno> {
        self.count = 0;
        self.count = datagrams::receive(socket.as_fd(), &mut self.inbox, BATCH_MAX)?;
        Ok(self.count)
    }

    /// The datagrams with their senders. Datagrams to a multicast or broadcast address are left out.
    pub fn datagrams(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let trains = self.inbox.trains(self.count);
        let of_one = trains.filter_map(|(flow, train)| Some((flow?.client, train)));
        of_one.flat_map(|(client, train)| train.iter().map(move |bytes| (client, bytes)))
    }
}

/// Sends the first [`BATCH_MAX`] of these datagrams, without waiting. Returns the number of datagrams that the kernel
/// accepted. An error is about the first datagram, and nothing was sent.
pub fn send<'a>(
    socket: impl AsFd,
    datagrams: impl Iterator<Item = (SocketAddr, &'a [u8])>,
) -> Result<usize, Errno> {
    let mut batch = [OutgoingTrain::NOTHING; BATCH_MAX];
    let mut count = 0;
    for (place, (client, bytes)) in batch.iter_mut().zip(datagrams) {
        *place = OutgoingTrain::to_client(Flow { client, local: None }, Train::one(bytes));
        count += 1;
    }
    datagrams::send(socket.as_fd(), &batch[..count], false)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_batch_has_each_datagram_with_its_sender() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(server) = UdpSocket::bind(host) else { continue };
            let address = server.local_addr().expect("its address");
            let clients: Vec<UdpSocket> =
                (0..BATCH_MAX + 3).map(|_| UdpSocket::bind(host).expect("a socket")).collect();
            for (number, client) in clients.iter().enumerate() {
                client.set_nonblocking(true).expect("no waiting");
                // The first one is empty.
                client.send_to(&vec![number as u8; number * 40], address).expect("sending");
            }
            let mut received = ReceivedBatch::default();
            for expected in [BATCH_MAX, 3] {
                assert_eq!(received.receive(&server), Ok(expected));
                assert_eq!(received.datagrams().count(), expected);
                assert_eq!(send(&server, received.datagrams()), Ok(expected));
            }
            assert_eq!(received.receive(&server), Err(Errno::AGAIN));
            assert_eq!(received.datagrams().count(), 0, "nothing of the last batch");
            let mut answer = [0; 2_000];
            for (number, client) in clients.iter().enumerate() {
                let (length, from) = client.recv_from(&mut answer).expect("an answer");
                assert_eq!((&answer[..length], from), (&*vec![number as u8; number * 40], address));
                assert!(client.recv_from(&mut answer).is_err(), "a second answer");
            }
        }
    }

    #[test]
    fn more_than_a_batch_is_not_sent_at_once() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("its address");
        let many = std::iter::repeat_n((address, &b"x"[..]), BATCH_MAX + 1);
        assert_eq!(send(&socket, many), Ok(BATCH_MAX));
        let long = vec![0; 65_508];
        let refused = std::iter::once((address, &long[..]));
        assert_eq!(send(&socket, refused), Err(Errno::MSGSIZE));
    }
}

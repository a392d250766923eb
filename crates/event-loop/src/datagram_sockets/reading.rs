//! Reading from datagram sockets.

use rustix::io::Errno;

use super::Datagrams;
use super::sending::is_unreachable;
use crate::datagrams::BATCH_MAX;
use crate::handler::Handler;
use crate::token::{Owner, Token};

/// Maximum number of messages per read from a member's socket, which serves only one client.
const MEMBER_BATCH_MAX: usize = 8;
/// Maximum number of consecutive reads from one socket per turn.
const READS_IN_A_ROW_MAX: usize = 4;

impl Datagrams<'_> {
    /// Delivers the received datagrams of a socket, within its share of the turn.
    pub(crate) fn read(&mut self, handler: &mut impl Handler, token: Token) {
        let Self { io } = self;
        let Some(mut datagram_state) = io.datagrams.take() else { return };
        // The inbox is moved out of the loop, so that the handler can use both.
        let mut inbox = std::mem::take(&mut datagram_state.inbox);
        io.datagrams = Some(datagram_state);
        let mut lost = 0;
        for round in 0..READS_IN_A_ROW_MAX {
            let Some(socket) = io.sockets.get(token) else { break };
            let owner = socket.owner;
            if owner == Owner::Nobody {
                io.close(token);
                break;
            }
            let Some(fd) = &socket.fd else { break };
            let is_listener = matches!(owner, Owner::DatagramListener(_));
            let batch_max = if is_listener { BATCH_MAX } else { MEMBER_BATCH_MAX };
            match fd.receive_trains(&mut inbox, batch_max) {
                Ok(count) => {
                    for (flow, train) in inbox.trains(count) {
                        match io.sockets.get(token).map(|socket| socket.owner) {
                            Some(now) if now == owner => {
                                handler.datagrams(io, owner, flow, train);
                            }
                            // The session released the socket during this batch. Further datagrams belong to no session.
                            Some(_) => io.close(token),
                            None => {}
                        }
                    }
                    if count < batch_max {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    // A wake-up without data: an earlier call has reported the error already.
                    if round == 0 && !is_listener {
                        fd.forget_errors();
                    }
                    break;
                }
                // A listener has no member. The error is about an earlier response, which a client did not receive.
                Err(_) if is_listener => {}
                Err(Errno::HOSTUNREACH) if fd.took_too_long() => lost += 1,
                Err(error) if is_unreachable(error) => {
                    handler.datagrams_failed(io, owner, error);
                    break;
                }
                Err(_) => {
                    lost += 1;
                    fd.forget_errors();
                }
            }
        }
        if let Some(datagram_state) = &mut io.datagrams {
            datagram_state.inbox = inbox;
            datagram_state.lost += lost;
        }
    }
}

//! The interface between sessions of datagrams and their environment.

use std::rc::Rc;

use weir_config::snapshot::Sessions;
use weir_core::datagram::Train;

use crate::arena::{ListenerKey, SessionKey};
use crate::edge::Turn;
use crate::local::pool::LocalPool;
use crate::local::surroundings::Sources;
use crate::local::table::LocalServer;
use crate::parts::failure::MemberFailure;
use crate::parts::notice::Notice;
use crate::session::{Session, Source, Tools};
use crate::termination::Termination;

/// The interface between sessions and their environment.
pub trait SessionEdge: Sized {
    /// A socket to a member.
    type Socket: Copy;

    /// Opens a socket to a member, or reuses one that was put back.
    fn open(
        &mut self,
        session: SessionKey,
        of: (&Source, &Sessions),
        pool: &Rc<LocalPool>,
        member: u32,
    ) -> Result<Self::Socket, MemberFailure>;

    /// Takes back the socket of a session that got all expected answers. Another session may use it.
    fn put_back(
        &mut self,
        socket: Self::Socket,
        settings: &Sessions,
        pool: &Rc<LocalPool>,
        member: u32,
    );

    /// Sends to the member. An error may concern an earlier datagram.
    fn to_member(&mut self, socket: Self::Socket, train: Train<'_>) -> Result<(), MemberFailure>;

    /// Sends the first datagrams to the member, with the PROXY header if configured.
    fn introduce(
        &mut self,
        session: &Session<Self::Socket>,
        train: Train<'_>,
    ) -> Result<(), MemberFailure>;

    /// Sends to the client.
    fn to_client(&mut self, source: Source, train: Train<'_>);

    /// Sets the deadline of a socket.
    fn due(&mut self, socket: Self::Socket, at_ms: u64);

    /// Closes a socket.
    fn close(&mut self, socket: Self::Socket);

    /// Ends and logs a session.
    fn finish(&mut self, session: &Session<Self::Socket>, why: Termination);

    /// Writes a message for operators to a log.
    fn tell(&mut self, notice: Notice<'_>);

    /// The active virtual server of a listener; `None`: no session can begin there.
    fn server_in_force(&self, listener: ListenerKey) -> Option<&Rc<LocalServer>>;

    /// The current turn of the worker.
    fn turn(&self) -> Turn;

    /// Tools that sessions share, one after another.
    fn tools(&mut self) -> &mut Tools;

    /// The sources of random numbers and of the time of day.
    fn sources(&self) -> Sources;
}

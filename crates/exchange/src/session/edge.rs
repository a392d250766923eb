//! The interface between sessions of datagrams and their surroundings.

use std::rc::Rc;

use weir_config::snapshot::Sessions;
use weir_core::datagram::Train;

use crate::arena::{ListenerKey, SessionKey};
use crate::edge::Turn;
use crate::local::around::Sources;
use crate::local::pool::LocalPool;
use crate::local::table::LocalServer;
use crate::parts::failure::MemberFailure;
use crate::parts::notice::Notice;
use crate::session::{Session, Source, Tools};
use crate::termination::Termination;

/// The interface between sessions and their surroundings.
pub trait SessionEdge: Sized {
    /// A socket to a member.
    type Socket: Copy;

    /// A socket to a member, for this session alone: a new one, or one that was put back.
    fn open(
        &mut self,
        session: SessionKey,
        of: (&Source, &Sessions),
        pool: &Rc<LocalPool>,
        member: u32,
    ) -> Result<Self::Socket, MemberFailure>;

    /// Takes a socket back whose session got all expected answers; another session may use it.
    fn put_back(
        &mut self,
        socket: Self::Socket,
        settings: &Sessions,
        pool: &Rc<LocalPool>,
        member: u32,
    );

    /// Sends to the member. An error is about something that was sent before, or says that nothing can be sent.
    fn to_member(&mut self, socket: Self::Socket, train: Train<'_>) -> Result<(), MemberFailure>;

    /// Sends the first datagrams to the member, with the PROXY header if configured.
    fn introduce(
        &mut self,
        session: &Session<Self::Socket>,
        train: Train<'_>,
    ) -> Result<(), MemberFailure>;

    /// Sends to the client.
    fn to_client(&mut self, source: Source, train: Train<'_>);

    /// When something must have come.
    fn due(&mut self, socket: Self::Socket, at_ms: u64);

    /// Closes a socket.
    fn close(&mut self, socket: Self::Socket);

    /// The session is over, and is logged.
    fn finish(&mut self, session: &Session<Self::Socket>, why: Termination);

    /// Tells the operator of something.
    fn tell(&mut self, notice: Notice<'_>);

    /// The active virtual server of a listener; `None`: no session can begin there.
    fn server_in_force(&self, listener: ListenerKey) -> Option<&Rc<LocalServer>>;

    /// When this turn of the worker began.
    fn turn(&self) -> Turn;

    /// Tools that all sessions share, one after another.
    fn tools(&mut self) -> &mut Tools;

    /// Where chance and the time of day come from.
    fn sources(&self) -> Sources;
}

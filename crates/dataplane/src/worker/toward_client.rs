//! What an exchange asks of its client's connection, whichever version that speaks: of HTTP/1 the exchange has
//! the connection for itself, of HTTP/2 a stream of it.

use super::ends::Ends;
use super::exchange::Exchange;
use super::world::Desk;

impl Ends {
    /// Whether the client has not taken everything that it was sent: what comes next has to wait.
    pub fn is_client_behind(&self, at: &mut Desk<'_>) -> bool {
        let is_stream_behind = at.world.stream(self).is_some_and(|stream| stream.out.is_behind());
        let client = at.world.clients.get(self.client);
        is_stream_behind || client.is_some_and(|client| at.io.queued(client.token) > 0)
    }

    /// The client must have done something by then.
    pub fn set_client_deadline(&mut self, at: &mut Desk<'_>, at_ms: u64) {
        let client = self.client;
        if let Some(stream) = at.world.stream_mut(self) {
            stream.deadline_ms = Some(at_ms);
            at.arm(client, at_ms);
        } else if let Some(client) = at.world.clients.get(client) {
            at.io.set_deadline(client.token, at_ms);
        }
    }

    /// The client need not do anything.
    #[inline]
    pub fn clear_client_deadline(&mut self, at: &mut Desk<'_>) {
        if let Some(stream) = at.world.stream_mut(self) {
            stream.deadline_ms = None;
        } else if let Some(client) = at.world.clients.get(self.client) {
            at.io.clear_deadline(client.token);
        }
    }
}

impl Exchange {
    /// The member takes more of the request: the client may send it.
    pub fn let_client_send(&mut self, at: &mut Desk<'_>) {
        if self.ends.stream.is_some() {
            return self.stream_goes_on(at);
        }
        self.ends.let_client_send(at);
    }
}

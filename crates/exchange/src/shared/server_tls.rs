//! The TLS of a virtual server as it runs: what accepts its connections, how sessions go on over reloads.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use weir_config::snapshot::{ServerTls, SessionsOf};
use weir_tls::server::{Acceptor, Sessions};
use weir_tls::session_cache::SessionCache;
use weir_tls::tickets::TicketKeys;

/// The TLS of a virtual server under one snapshot.
#[derive(Debug)]
pub struct LiveTls {
    /// Chooses what a client gets.
    pub acceptor: Acceptor,
    /// Handshakes under way on all workers.
    pub handshakes: Arc<AtomicU32>,
    sessions: Sessions,
    of: SessionsOf,
    /// Which clients are let in, by their certificates; the same for the same settings.
    pub lets_in: Arc<[u8]>,
}

impl LiveTls {
    /// What `settings` ask for. Own tickets, and sessions that are remembered, live on where `previous` has the
    /// same kind of them and the same clients are let in: a certificate is changed without anybody noticing.
    pub fn build(name: &str, settings: &ServerTls, previous: Option<&Self>) -> Self {
        let kept = previous.filter(|previous| {
            previous.of == settings.sessions && *previous.lets_in == *settings.lets_in
        });
        let sessions = match kept {
            Some(previous) => previous.sessions.clone(),
            None => {
                // A name has a length of its own, what is behind it as well.
                let purpose = [name.as_bytes(), b"\0", &settings.lets_in].concat();
                sessions(&purpose, &settings.sessions)
            }
        };
        let mut acceptor = Acceptor::new(settings.default.with_sessions(&sessions));
        for special in &settings.names {
            let offer = special.offer.with_sessions(&sessions);
            special.names.iter().for_each(|name| acceptor.add(name, &offer));
        }
        let handshakes = previous.map(|previous| Arc::clone(&previous.handshakes));
        Self {
            acceptor,
            handshakes: handshakes.unwrap_or_default(),
            sessions,
            of: settings.sessions.clone(),
            lets_in: match kept {
                Some(previous) => Arc::clone(&previous.lets_in),
                None => settings.lets_in.as_slice().into(),
            },
        }
    }
}

fn sessions(purpose: &[u8], of: &SessionsOf) -> Sessions {
    match of {
        SessionsOf::Off => Sessions::Off,
        SessionsOf::Stateful { bytes_max, early_data } => {
            let bytes_max = usize::try_from(*bytes_max).unwrap_or(usize::MAX);
            let cache = Arc::new(SessionCache::new(bytes_max));
            Sessions::Stateful { cache, early_data: *early_data }
        }
        SessionsOf::Tickets { keys } => {
            let keys = match keys {
                None => TicketKeys::own(purpose),
                Some(keys) => TicketKeys::shared(purpose, &keys.secrets()),
            };
            // Without random numbers there are no handshakes either.
            keys.map_or(Sessions::Off, |keys| Sessions::Tickets(Arc::new(keys)))
        }
    }
}

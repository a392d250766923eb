//! The TLS of a virtual server at run time: its acceptor, and sessions that survive reloads.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use weir_config::snapshot::{ServerTls, SessionsOf};
use weir_tls::challenges::Challenges;
use weir_tls::server::{Acceptor, Sessions};
use weir_tls::session_cache::SessionCache;
use weir_tls::tickets::{OwnSecrets, TicketKeys};

/// The TLS of a virtual server under one snapshot.
#[derive(Debug)]
pub struct LiveTls {
    /// Selects the certificate and settings for a client.
    pub acceptor: Acceptor,
    /// Handshakes under way on all workers.
    pub handshakes: Arc<AtomicU32>,
    sessions: Sessions,
    of: SessionsOf,
    /// Identifies the accepted client certificates; equal for equal settings.
    pub lets_in: Arc<[u8]>,
}

impl LiveTls {
    /// The acceptor for `settings`. Own tickets and remembered sessions continue if `previous` has the same kind and
    /// accepts the same client certificates: clients do not notice a changed certificate. `challenges`: answered where there
    /// are certificates by ACME.
    pub fn build(
        name: &str,
        settings: &ServerTls,
        challenges: Option<&Arc<Challenges>>,
        previous: Option<&Self>,
    ) -> Self {
        let kept = previous.filter(|previous| {
            previous.of == settings.sessions && *previous.lets_in == *settings.lets_in
        });
        let sessions = match kept {
            Some(previous) => previous.sessions.clone(),
            None => {
                // The NUL separates the two: both have any length.
                let purpose = [name.as_bytes(), b"\0", &settings.lets_in].concat();
                sessions(&purpose, &settings.sessions)
            }
        };
        let mut acceptor = Acceptor::new(settings.default.with_sessions(&sessions));
        for special in &settings.names {
            let offer = special.offer.with_sessions(&sessions);
            special.names.iter().for_each(|name| acceptor.add(name, &offer));
        }
        if let (Some(challenges), Some(_)) = (challenges, settings.managed().next()) {
            acceptor.answer(challenges);
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

    /// The secrets of own tickets, for the process that replaces this one.
    pub fn ticket_secrets(&self) -> Option<OwnSecrets> {
        match &self.sessions {
            Sessions::Tickets(keys) => keys.own_secrets(),
            _ => None,
        }
    }

    /// Accepts the tickets of the previous process. Without them, clients make a full handshake.
    pub fn continue_tickets(&self, former: &OwnSecrets) {
        if let Sessions::Tickets(keys) = &self.sessions {
            // An error leaves the keys as they are.
            let _ = keys.continue_with(former);
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
            // Without random numbers, handshakes fail too.
            keys.map_or(Sessions::Off, |keys| Sessions::Tickets(Arc::new(keys)))
        }
    }
}

//! The substitute of a virtual server of `type: fast_l4` where packets cannot be processed.

use std::sync::Arc;

use weir_core::policy::Policy;

use super::{Servers, allowed_clients, listener, sentences};
use crate::decode::{Context, Section as _};
use crate::raw;
use crate::raw::HttpProfile;
use crate::raw::packet::{FastL4Profile, TtlOr, TtlWord};
use crate::raw::tcp::TcpProfile;
use crate::snapshot::packet::{Delivery, Fallback, PacketProtocol, PacketServer, PacketSource};
use crate::snapshot::{
    Address, ConnectionPolicies, ErrorPages, Limits, ListenPoint, ListenerOptions, Relay, ResetOn,
    Service, Sessions, VirtualServer,
};
use crate::validate::server::{client_address, settings};

impl Servers<'_> {
    /// A virtual server of `type: tcp` or `type: udp`, if sockets can do the same.
    pub(super) fn fallback(
        &self,
        server: &PacketServer,
        profile: &FastL4Profile,
        (raw, persistence, allowed): (&raw::VirtualServer, Option<usize>, Vec<Arc<Policy>>),
        context: &mut Context,
    ) -> Fallback {
        let Some(service) = service(server, raw) else {
            return none("sockets can replace packets only for protocols tcp and udp");
        };
        let of_socket = |destination| listener(destination, server.protocol);
        let listen: Option<Vec<Address>> = server.destinations.iter().map(of_socket).collect();
        let (pool, listen) = match (server.pool, listen) {
            (None, _) => return none("sockets do not forward by the routing table"),
            (_, None) => {
                return none(
                    "sockets listen on an address and its ports, not on a network or on any port",
                );
            }
            _ if server.delivery == Delivery::DirectReturn => {
                return none("with sockets members cannot answer clients directly (`dsr`)");
            }
            _ if server.delivery != Delivery::Translate => {
                return none("sockets do not pass packets on to routers");
            }
            _ if server.keeps_port => {
                return none("sockets use the members' ports (`translate_port: false`)");
            }
            (Some(pool), Some(listen)) => (pool, listen),
        };
        let Some(client_address) = client_address(raw, context) else {
            return none("`client_address` is invalid");
        };
        let proxy = VirtualServer {
            name: Arc::clone(&server.name),
            listen: listen.into_iter().map(ListenPoint::from).collect(),
            // A virtual address that is routed to this host may not be one of its own addresses.
            listening: ListenerOptions { free_bind: true, defer_accept_s: None },
            pool,
            http: settings(&HttpProfile::absent(), false),
            service,
            tls: None,
            compression: None,
            waf: None,
            limits: Limits::default(),
            policies: Vec::new(),
            connection_policies: ConnectionPolicies { accepted: allowed, named: Vec::new() },
            persistence,
            client_address: Arc::new(client_address),
            request_id: None,
            tracing: None,
            error_pages: Arc::new(ErrorPages::default()),
            server_timing: false,
        };
        Fallback::Proxy { server: Arc::new(proxy), remarks: sentences(remarks(server, profile)) }
    }
}

/// The service for the protocol over sockets, if there is one.
fn service(server: &PacketServer, raw: &raw::VirtualServer) -> Option<Service> {
    let idle_timeout_ms = server.idle_timeout_ms;
    match server.protocol {
        PacketProtocol::Tcp => Some(Service::Tcp(Arc::new(Relay {
            idle_timeout_ms,
            hello_timeout_ms: TcpProfile::absent().hello_timeout.0,
            names: None,
            reads_name: false,
            // As packets have it: a member that is disabled or removed keeps its flows.
            reset_on: match server.resets_on_member_down {
                true => ResetOn::Down,
                false => ResetOn::Nothing,
            },
        }))),
        PacketProtocol::Udp => Some(Service::Udp(Arc::new(Sessions {
            idle_timeout_ms,
            datagrams_max: None,
            responses_max: None,
            per_socket_max: 1,
            amplification_max: None,
            clients: allowed_clients::addresses(raw),
        }))),
        PacketProtocol::Any | PacketProtocol::Number(_) => None,
    }
}

fn none(why: &str) -> Fallback {
    Fallback::None(why.into())
}

/// Differences between a relay and the profile.
fn remarks(server: &PacketServer, profile: &FastL4Profile) -> Vec<String> {
    let mut remarks = vec![
        "clients get there as far as the virtual server's address is one of this host (a local route)".to_owned(),
    ];
    match &server.source {
        PacketSource::Client => remarks.push(
            "members see an address of this host in place of the client's (`source: off`)".into(),
        ),
        PacketSource::Auto => {}
        PacketSource::Addresses { .. } => {
            remarks.push("members are reached from the pool's `source`".into());
        }
    }
    let without_effect = [
        ("mss_max", profile.mss_max.is_some()),
        ("ttl", profile.ttl.value != TtlOr::Word(TtlWord::Decrement)),
        ("tos", profile.tos.is_some()),
        ("loose_initiation", profile.loose_initiation.value),
        ("handshake_timeout", profile.handshake_timeout.given),
        ("closing_timeout", profile.closing_timeout.given),
        ("reset_on_timeout", !profile.reset_on_timeout.value),
    ];
    let keys: Vec<String> = without_effect
        .iter()
        .filter(|(_, is_there)| *is_there)
        .map(|(key, _)| format!("`{key}`"))
        .collect();
    if !keys.is_empty() {
        let have = if keys.len() == 1 { "has" } else { "have" };
        remarks.push(format!("{} {have} no effect with sockets", keys.join(", ")));
    }
    remarks
}

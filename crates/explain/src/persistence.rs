//! The persistence of a request's client.

use weir_api::explanation::PersistenceTold;
use weir_config::snapshot::{AddressOf, PersistenceKind};
use weir_exchange::local::pool::Preference;
use weir_exchange::local::traffic::Route;
use weir_exchange::parts::witness::ServerDecision;
use weir_exchange::shared::sticky::Sticky;

/// The result of persistence for a request that goes to a member; `None`: no persistence applies.
pub fn of(decided: &ServerDecision<'_, '_>, route: &Route) -> Option<PersistenceTold> {
    let pool = decided.traffic.pool(route.pool);
    let label = |member: u32| {
        pool.settings().members.get(member as usize).map(|member| member.label.to_string())
    };
    if let (Some(named), Preference::Member(member)) = (&decided.decision.member, route.preference)
        && label(member).as_deref() == Some(&**named)
    {
        let (name, kind) = (String::new(), "member".into());
        let (verdict, member) = ("by_rule".into(), label(member));
        return Some(PersistenceTold { name, kind, verdict, member, remembers: None });
    }
    let own = decided.traffic.settings().persistence;
    let asked = decided.decision.persistence.map(|it| it.map(|it| it as usize)).unwrap_or(own)?;
    let persistence = decided.traffic.snapshot().persistence.get(asked)?;
    let known = match route.preference {
        Preference::Member(member) => Some(member),
        Preference::Any | Preference::Key(_) => None,
    };
    let verdict = match (route.preference, &persistence.kind) {
        (Preference::Member(_), _) => "kept",
        (Preference::Key(_), _) => "by_key",
        (Preference::Any, kind) if kind.is_keyed() => "no_key",
        (Preference::Any, _) => "new",
    };
    Some(PersistenceTold {
        name: persistence.name.to_string(),
        kind: kind_of(&persistence.kind).into(),
        verdict: verdict.into(),
        member: known.and_then(label),
        remembers: remembers(route),
    })
}

fn kind_of(kind: &PersistenceKind) -> &'static str {
    match kind {
        PersistenceKind::Insert(_) | PersistenceKind::Passive { .. } => "cookie",
        PersistenceKind::Address(it) => match it.of {
            AddressOf::Client => "source_address",
            AddressOf::Server => "destination_address",
        },
        PersistenceKind::Learned(_) => "learned",
        PersistenceKind::ConnectionIds(_) => "quic",
        PersistenceKind::Hash(_) => "hash",
        PersistenceKind::PathParameter { .. } => "path_parameter",
    }
}

/// The key under which the request's member is stored.
fn remembers(route: &Route) -> Option<String> {
    let stickiness = route.stickiness.as_ref()?;
    match &*stickiness.sticky {
        Sticky::Insert(insert) if stickiness.is_stale => {
            Some(format!("the response sets the cookie {}", insert.name))
        }
        Sticky::Insert(insert) => {
            Some(format!("the cookie {} stays, unless the member changes", insert.name))
        }
        Sticky::Address { .. } if stickiness.is_stale => {
            Some("the table remembers the address with its member".into())
        }
        Sticky::Learned { learn: Some(_), .. } => {
            Some("the table learns what the response says".into())
        }
        Sticky::Learned { learn: None, .. } if stickiness.is_stale => {
            Some("the table remembers the value with its member".into())
        }
        _ => None,
    }
}

//! No pool, monitor, log or service leads to the admin listener.

use crate::decode::{Context, Spanned};
use crate::diagnostic::Severity;
use crate::document::{SourceId, Span};
use crate::endpoint::Endpoint;
use crate::own_doors::OwnDoors;
use crate::raw;
use crate::raw::member::MemberEntry;
use crate::raw::monitor::Monitor;
use crate::snapshot::Address;

/// Reports each destination that is an admin listener, and each monitor whose port makes it one.
pub(super) fn refuse(file: &raw::File, context: &mut Context) {
    let listen = file.admin.as_ref().and_then(|admin| admin.value.listen.as_ref());
    let listen = listen.map_or(&[][..], |listen| &listen.value.0);
    if listen.is_empty() {
        return;
    }
    let doors = OwnDoors::new(listen.iter().map(|address| &address.value.0));
    for (to, span) in std::mem::take(&mut context.reached) {
        if doors.have_endpoint(&to) {
            report(&to, span, context);
        }
    }
    let pools = file.pools.as_ref().map_or(&[][..], |pools| &pools.value.0);
    for pool in pools.iter().filter_map(|pool| pool.value.as_ref()) {
        let shared = pool.monitors.as_ref().map_or(&[][..], |monitors| &monitors.value);
        for member in pool.members.iter().flat_map(|members| members.value.iter()) {
            let MemberEntry(member) = &member.value;
            let own = member.monitors.as_ref().map(|monitors| &monitors.value.0[..]);
            let Some(address) = &member.address else { continue };
            refuse_monitors(&doors, &address.value, own.unwrap_or(shared), context);
        }
    }
}

/// Reports the monitors with a port at which the member's host has an admin listener.
fn refuse_monitors(
    doors: &OwnDoors,
    member: &Endpoint,
    monitors: &[Spanned<Monitor>],
    context: &mut Context,
) {
    for port in monitors.iter().filter_map(|monitor| monitor.value.port.as_ref()) {
        let number = port.value.0;
        let probed = match member {
            Endpoint::Literal(Address::Socket(member)) => {
                let mut probed = *member;
                probed.set_port(number);
                Endpoint::Literal(Address::Socket(probed))
            }
            Endpoint::Name { host, .. } => Endpoint::Name { host: host.clone(), port: number },
            Endpoint::Literal(Address::Unix(_) | Address::Udp(_)) => continue,
        };
        if doors.have_endpoint(&probed) {
            report(&probed, port.span, context);
        }
    }
}

/// Reports a destination. A change is refused. In a file, it is a warning, so that a file that served before still does;
/// weir never connects to the destination.
fn report(to: &Endpoint, span: Span, context: &mut Context) {
    let help = "name another address, or move `admin.listen`".to_owned();
    let (severity, what) = match span.source == SourceId::OVERLAY {
        true => (Severity::Error, "nothing may lead to it"),
        false => (Severity::Warning, "weir never connects to it"),
    };
    let message = format!("{to} is weir's own admin listener: {what}");
    context.report(severity, span, message, Some(help));
}

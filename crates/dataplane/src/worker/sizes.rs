//! Tests of the sizes of objects that a worker has many of, in bytes. They must not grow unnoticed.

use weir_connection::client::http2::Http2;
use weir_connection::member::http2::MemberHttp2;
use weir_connection::{client::streams::Stream, member::streams::MemberStream};
use weir_exchange::arena::Slot;
use weir_exchange::parts::request_context::RequestContext;
use weir_exchange::transaction::Transaction;
use weir_exchange::transaction::exchange::Exchange;

use crate::worker::state::client::Client;
use crate::worker::state::member::MemberConnection;

#[test]
fn nothing_is_larger_than_today() {
    // An idle client uses one of these slots, and one slot in the event loop's table of sockets.
    check::<Slot<Client>>(320);
    check::<Client>(312);
    // The additional sizes of a client and a member connection with HTTP/2.
    check::<Http2>(1_152);
    check::<Stream>(192);
    // Two words of it say whose the connection is.
    check::<MemberConnection>(216);
    check::<MemberHttp2>(1_128);
    check::<MemberStream>(136);
    check::<Transaction>(464);
    check::<Exchange>(464);
    check::<RequestContext>(784);
}

#[track_caller]
fn check<T>(today: usize) {
    let (name, size) = (std::any::type_name::<T>(), size_of::<T>());
    assert!(
        size <= today,
        "{name} has {size} bytes, and it had {today}: box what few of them need, or say in the commit why it grows"
    );
    assert!(size == today, "{name} has {size} bytes now: lower its number here from {today}");
}
